// Requests to the server, and the text shown when one fails.

const TIMEOUT_MS = 20_000;

/** An error reply of the server. */
export class Problem extends Error {
  constructor(status, body) {
    super(body?.message ?? `the server answered with status ${status}`);
    this.kind = body?.error ?? "";
    this.status = status;
    this.body = body ?? {};
  }
}

/** No reply: the connection failed or timed out. */
export class Unreachable extends Error {}

async function ask(path, options, timeoutMs = TIMEOUT_MS) {
  const { signal } = options;
  const limit = AbortSignal.timeout(timeoutMs);
  let reply;
  try {
    reply = await fetch(path, { ...options, signal: signal ? AbortSignal.any([signal, limit]) : limit, credentials: "same-origin", cache: "no-store" });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Unreachable(limit.aborted ? `no answer within ${timeoutMs / 1000} s` : `no connection to ${location.host}`);
  }
  let body = null;
  try {
    body = await reply.json();
  } catch (error) {
    if (signal?.aborted) throw error;
  }
  if (!reply.ok) throw new Problem(reply.status, body);
  return body;
}

/** Read a route under /ui/api. */
export function get(path, query = {}, signal = undefined, timeoutMs = undefined) {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== "") words.append(name, value);
  }
  const text = words.toString();
  return ask(`/ui/api${path}${text ? `?${text}` : ""}`, { signal }, timeoutMs);
}

/** Request an action. The JSON content type lets the server reject forms that other sites post. */
export const post = (path, body = {}, signal = undefined, timeoutMs = undefined) =>
  ask(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body), signal }, timeoutMs);

const ADVICE = {
  NotFound: "It may have been dropped or retired meanwhile; look in the list.",
  NotReady: "It is too early: try again in a moment.",
  Busy: "Try again in a moment.",
  Unavailable: "A daemon does not answer. See Hosts for which one; the page tries again by itself.",
  Deadline: "It took too long. Ask for less, or try again when the cluster is less busy.",
  Stale: "A newer version has been published. Load the page again.",
  Corrupt: "Bytes on a disk are not what was written. Run an audit of the space, and see the log of the storaged.",
  Internal: "This is a fault of Asterism's own. Its log has the story under the number in the message.",
};

/** Describe an error and its remedy. */
export function told(error) {
  if (error instanceof Problem) return { what: error.message, todo: ADVICE[error.kind] ?? "" };
  if (error instanceof Unreachable) return { what: `The server does not answer: ${error.message}.`, todo: "Is it running? The page tries again by itself." };
  return { what: `The page itself failed: ${error.message}`, todo: "Load it again; if that does not help, it is a fault of Asterism's own." };
}
