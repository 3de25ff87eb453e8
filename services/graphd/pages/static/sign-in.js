// The sign-in page: exchanges a credential for a session, and returns to the address that needed one.

import { describeError, get, post } from "./api.js";
import { h, patch } from "./dom.js";

const HOME = "/ui";
const main = document.getElementById("main");
const form = document.getElementById("sign-in");
const box = document.getElementById("credential");
const problem = document.getElementById("problem");

/** Return the address to return to: of this server, whatever a link to this page says. */
function destination() {
  const next = new URLSearchParams(location.search).get("next") ?? "";
  if (!next.startsWith("/") || !URL.canParse(next, location.origin)) return HOME;
  const to = new URL(next, location.origin);
  return to.origin === location.origin && to.pathname !== location.pathname ? to.href : HOME;
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = form.querySelector("button");
  button.disabled = true;
  try {
    await post("/ui/api/sign-in", { credential: box.value });
    box.value = "";
    location.replace(destination());
  } catch (error) {
    const { what, todo } = describeError(error);
    patch(problem, [h("div", { class: "problem" }, h("p", null, h("strong", null, what)), todo && h("p", null, todo))]);
    button.disabled = false;
    box.select();
    box.focus();
  }
});

async function start() {
  try {
    // A link on another site leads here although there is a session: the browser keeps the cookie from that request.
    await get("/session");
    location.replace(destination());
  } catch {
    main.setAttribute("aria-busy", "false");
    box.focus();
  }
}

start();
