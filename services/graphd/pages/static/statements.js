// Statements in the browser: which ones change the cluster, and the history of those that ran.

const KEY = "asterism-statements";
const MOST = 50;
const LONGEST = 4000;
const SECRET = /pass(word|wd|phrase)|secret|token|credential|api_?key|access_?key|private_?key/i;

/** Return the statements that change the cluster, as [verb, object]. Quoted text and comments are skipped. */
export function changes(text) {
  const names = [];
  const bare = text.replace(/"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`|\/\*[^]*?\*\/|(?:\/\/|#)[^\n]*/g, (quoted) => (quoted[0] === "`" ? ` @${names.push(quoted.slice(1, -1)) - 1} ` : " "));
  const name = (word) => (word?.startsWith("@") ? names[Number(word.slice(1))] : word) ?? "";
  return bare
    .split(";")
    .map((one) => one.match(/^\s*(?:(?:explain|profile)\s+)?(create|drop|submit|stop|recover|grant|revoke)\b(?:\s+(?:space|job|role)\b)?(?:\s+if\s+(?:not\s+)?exists\b)?\s*([^\s(]+)?/i))
    .filter(Boolean)
    .map((match) => [match[1].toUpperCase(), name(match[2])]);
}

/** Return the texts of the dialog that confirms changes. */
export function confirmation(made, space) {
  const title = {
    CREATE: (name) => `Create space ${name}?`,
    DROP: (name) => `Drop space ${name}?`,
    SUBMIT: (kind) => `Submit ${kind} job?`,
    STOP: (job) => `Stop job ${job}?`,
    RECOVER: (job) => (job ? `Recover job ${job}?` : "Recover jobs?"),
    GRANT: (role) => `Grant role ${role}?`,
    REVOKE: () => "Revoke a role?",
  };
  const dropped = made.filter(([verb]) => verb === "DROP").map(([, name]) => name);
  const spaces = dropped.length > 1 ? "the spaces" : "the space";
  const text = [
    made.length > 1 && `Statements: ${made.map((change) => change.join(" ")).join(", ")}.`,
    dropped.length > 0 && `This removes ${spaces} ${dropped.join(", ")} with all versions and data. This cannot be undone.`,
    !dropped.length && `This changes the cluster.${space ? ` Current space: ${space}.` : ""}`,
  ];
  const single = made.length === 1;
  return { title: single ? title[made[0][0]](made[0][1]) : `Run ${made.length} statements that change the cluster?`, text: text.filter(Boolean).join(" "), yes: single && dropped.length ? "Drop space" : "Run" };
}

/** Return the statements that ran in this browser, newest first: {text, space, language, at}. */
export function history() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(kept) ? kept.filter((one) => typeof one?.text === "string") : [];
  } catch {
    return []; // storage is not available, or has other content
  }
}

/** Add a statement to the history, unless it may contain a secret or begins with a space. */
export function remember(entry) {
  if (!entry.text.trim() || /^\s/.test(entry.text) || entry.text.length > LONGEST || SECRET.test(entry.text)) return;
  const others = history().filter((one) => one.text !== entry.text || one.space !== entry.space);
  store([{ ...entry, at: Date.now() }, ...others].slice(0, MOST));
}

/** Remove all statements of the history. */
export const forget = () => store([]);

function store(entries) {
  try {
    localStorage.setItem(KEY, JSON.stringify(entries));
  } catch {
    // Storage is not available: there is no history.
  }
}
