"""storaged holds parts: it keeps blocks, builds tables and images, and answers draws from the
images.

`api` answers requests by `sampling` over `kernels`; `local_spaces` has what is here,
`version_loader` opens versions, `garbage_collector` removes them. `task_runner` runs `build`,
`version_tasks` and `backup`; `store` has RocksDB and files, `app` composes all. Asked by graphd
only; asks metad only. Merging of several hosts' replies does not belong here."""
