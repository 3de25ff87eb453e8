# One image for the three daemons and the `asterism` command: `python -m metad`, `python -m storaged`, `python -m graphd`, `asterism`.
FROM python:3.11-slim-bookworm AS build
WORKDIR /src
RUN python -m venv /opt/asterism
ENV PATH=/opt/asterism/bin:$PATH PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1

# What it depends on changes less often than what it is: a layer of its own.
COPY pyproject.toml README.md LICENSE ./
COPY services/pyproject.toml services/
RUN python -c "import tomllib; \
client, server = (tomllib.load(open(f, 'rb'))['project'] for f in ('pyproject.toml', 'services/pyproject.toml')); \
extras = [r for name in ('ingest', 'export', 'cli', 's3') for r in client['optional-dependencies'][name]]; \
needed = [*client['dependencies'], *server['dependencies'], *extras]; \
print(*(r for r in needed if not r.startswith('asterism-graph')), sep='\n')" > requirements.txt \
 && pip install -q -r requirements.txt \
 && find /opt/asterism -type d \( -name tests -o -name include \) -prune -exec rm -rf {} +

COPY proto proto
COPY services services
COPY client client
RUN pip install -q --no-deps . ./services && pip uninstall -q -y setuptools pip

FROM python:3.11-slim-bookworm
RUN useradd --system --uid 10001 --no-create-home --home-dir /var/lib/asterism asterism \
 && install -d -o asterism -g asterism /var/lib/asterism /var/cache/asterism
COPY --from=build /opt/asterism /opt/asterism
# Arenas are few, for RocksDB's threads would keep one each.
ENV PATH=/opt/asterism/bin:$PATH PYTHONUNBUFFERED=1 NUMBA_CACHE_DIR=/var/cache/asterism MALLOC_ARENA_MAX=2
USER asterism
WORKDIR /var/lib/asterism
# Kernels compiled here are used where the processor is the same; elsewhere a daemon compiles its own at its first start.
RUN python -c "from graphd.warmup import compile_kernels as g; from storaged.warmup import compile_kernels as s; g(); s()"
VOLUME /var/lib/asterism
CMD ["asterism", "--help"]
