"""Both ends of one flow: a reference to its configuration goes in; connections and the flow's status come out."""
