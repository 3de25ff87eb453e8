// Who is signed in, and what its roles allow. Without access control there is no session, and everything is allowed.

import { describeError, get, leave, post, signsIn, useToken } from "./api.js";
import { h } from "./dom.js";

const ROLES = ["reader", "writer", "builder", "admin"];
let session = null;

/** Fetch the session, once, and show it in the header; return whether that was now. */
export async function ensure(signal) {
  if (!signsIn || session !== null) return false;
  session = await get("/session", {}, signal);
  useToken(session.csrf_token);
  show();
  return true;
}

/** Return whether the caller has at least a role in a space. */
export function may(role, space) {
  if (!signsIn) return true;
  const least = ROLES.indexOf(role);
  return Boolean(session?.is_cluster_admin) || [session?.roles[space], session?.role_everywhere].some((held) => ROLES.indexOf(held) >= least);
}

/** Return whether the caller is an administrator of the cluster. */
export const isClusterAdmin = () => !signsIn || Boolean(session?.is_cluster_admin);

function show() {
  const administers = session.is_cluster_admin || Object.values(session.roles).includes("admin");
  if (administers) document.getElementById("nav").append(h("li", null, h("a", { href: "/ui/access" }, "Access")));
  const words = `Signed in with ${session.kind.replace("_", " ")}${session.credential_id && ` ${session.credential_id}`}`;
  const who = h("span", { id: "who", title: words }, h("span", { class: "unseen" }, "Signed in as "), session.principal);
  document.getElementById("theme").before(who);
  if (session.csrf_token) who.after(h("button", { id: "sign-out", type: "button", onclick: signOut }, "Sign out"));
}

async function signOut() {
  try {
    await post("/ui/api/sign-out");
  } catch (error) {
    const { what, todo } = describeError(error);
    alert(`The sign-out may not be complete: ${what} ${todo}`); // the next page would not show it
  }
  leave();
}
