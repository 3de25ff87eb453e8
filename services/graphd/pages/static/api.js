// Requests to the server, and the text shown when one fails.

const TIMEOUT_MS = 20_000;
const SIGN_IN = "/ui/sign-in";

/** Whether people sign in on these pages: the server says so in the page. */
export const signsIn = document.documentElement.hasAttribute("data-sign-in");
let token = "";
let leaving = false;

/** Send the token of the session with each change from now on. */
export function useToken(text) {
  token = text;
}

addEventListener("pageshow", () => { leaving = false; }); // also when the browser goes back to a kept page

/** Go to an address of the sign-in page, once: another navigation would abort the first. */
export function leave(address = SIGN_IN) {
  if (leaving) return;
  leaving = true;
  location.assign(address);
}

/** An error reply of the server. */
export class Problem extends Error {
  constructor(status, body) {
    super(body?.message ?? `the server responded with status ${status}`);
    this.kind = body?.error ?? "";
    this.status = status;
    this.body = body ?? {};
  }
}

/** No reply: the connection failed or timed out. */
export class Unreachable extends Error {}

/** Keep integers beyond 2^53 as text, so that ids of 64 bits are not rounded. */
const exact = (_, value, context) => (typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? "") ? context.source : value);

async function ask(path, options, timeoutMs = TIMEOUT_MS) {
  const { signal } = options;
  const limit = AbortSignal.timeout(timeoutMs);
  let reply;
  try {
    reply = await fetch(path, { ...options, signal: signal ? AbortSignal.any([signal, limit]) : limit, credentials: "same-origin", cache: "no-store" });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Unreachable(limit.aborted ? `no response within ${timeoutMs / 1000} s` : `no connection to ${location.host}`);
  }
  let body = null;
  try {
    body = JSON.parse(await reply.text(), exact);
  } catch (error) {
    if (signal?.aborted) throw error;
  }
  if (reply.status === 401 && signsIn) leave(`${SIGN_IN}?next=${encodeURIComponent(location.pathname + location.search)}`);
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
  ask(path, { method: "POST", headers: { "content-type": "application/json", ...(token && { "x-csrf-token": token }) }, body: JSON.stringify(body), signal }, timeoutMs);

const ADVICE = {
  NotReady: "Try again in a moment.",
  Busy: "Try again in a moment.",
  Unavailable: "A daemon is not responding. The Hosts page shows which one.",
  Deadline: "The request timed out. Request less, or try again when the cluster is less busy.",
  Stale: "A newer version was published. Reload the page.",
  Corrupt: "Stored data does not match its checksum. Audit the space, and check the log of the storaged.",
  Internal: "This is a bug in Asterism. The log of the daemon has details under the id in the message.",
};
const HOST_ID = /\bstoraged [0-9a-f]{32}(?: at )?/g;

/** Describe an error and its remedy. */
export function describeError(error) {
  if (error instanceof Problem) return { what: error.message.replace(HOST_ID, "storaged "), todo: ADVICE[error.kind] ?? "" };
  if (error instanceof Unreachable) return { what: `The server is not responding: ${error.message}.`, todo: "Check that it is running." };
  return { what: `This page failed: ${error.message}`, todo: "Reload it. If that does not help, this is a bug in Asterism." };
}
