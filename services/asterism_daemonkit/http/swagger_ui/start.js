// Shows the routes of this server. Nothing is requested from other hosts: without `validatorUrl`,
// Swagger UI would send the document's address to a service on the internet.

/** Address of the session of a browser that is signed in; empty if there are none. */
const session = document.documentElement.dataset.session ?? "";
const READS = ["GET", "HEAD", "OPTIONS"];

/** Add the token of the session to a change of "Try it out", as the other pages do. */
async function addToken(request) {
  const named = Object.keys(request.headers).some((name) => name.toLowerCase() === "authorization");
  if (!session || named || READS.includes((request.method ?? "GET").toUpperCase())) return request;
  const reply = await fetch(session, { credentials: "same-origin", cache: "no-store" });
  if (reply.ok) request.headers["x-csrf-token"] = (await reply.json()).csrf_token;
  return request;
}

SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  validatorUrl: null,
  requestInterceptor: addToken,
  presets: [SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
});
