"""What metad shows to browsers, curl and CI: `routes` over the verbs of `metad.service`, answering
with `views`.

asterism_daemonkit has the door itself (health, metrics, flags, errors); `metad.app` hands it these
routes."""
