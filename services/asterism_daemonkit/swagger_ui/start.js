// Shows the routes of this server. Nothing is requested from other hosts: without `validatorUrl`,
// Swagger UI would send the document's address to a service on the internet.
SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  validatorUrl: null,
  presets: [SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
});
