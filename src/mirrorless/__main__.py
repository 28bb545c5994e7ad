"""`python -m mirrorless`."""

from mirrorless.cli import main

if __name__ == "__main__":
    main()
