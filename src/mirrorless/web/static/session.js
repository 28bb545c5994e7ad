// Talks to the server: the token, the stream of updates, and requests.

let csrf = null;

export async function session() {
  const answer = await fetch("api/session", { cache: "no-store" });
  const found = await answer.json();
  csrf = found.csrf;
  return found;
}

export async function signIn(token) {
  const answer = await fetch("api/session", { method: "POST", headers: { Authorization: `Bearer ${token}` } });
  return answer.ok;
}

// The token in the address is not sent to the server by the browser; it is taken out of the address at once.
export function tokenInAddress() {
  const found = location.hash.match(/^#token=([^&]+)/);
  if (!found) return null;
  history.replaceState(null, "", location.pathname);
  return decodeURIComponent(found[1]);
}

export async function get(path, parameters = {}) {
  const answer = await fetch(`api/${path}?${new URLSearchParams(parameters)}`, { cache: "no-store" });
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error);
  return body;
}

export async function act(action, flow) {
  const answer = await fetch(`api/flows/${action}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-CSRF-Token": csrf || "" },
    body: JSON.stringify({ flow }),
  });
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error);
}

export function stream(store, onEnd) {
  const source = new EventSource("api/stream");
  source.addEventListener("snapshot", (event) => store.takeWhole(JSON.parse(event.data)));
  source.addEventListener("delta", (event) => store.takeDelta(JSON.parse(event.data)));
  source.addEventListener("error", () => {
    store.setConnected(false);
    if (source.readyState === EventSource.CLOSED) onEnd();
  });
}
