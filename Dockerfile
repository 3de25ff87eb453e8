# One image for the three daemons and the `asterism` command: `python -m metad`, `python -m storaged`,
# `python -m graphd`, `asterism`. It needs no BuildKit. Layers, from the one that changes least:
# the system, the packages that Asterism depends on, the daemons, their compiled kernels, the client.
# Pin it to a digest: --build-arg BASE=python:3.11-slim-bookworm@sha256:... (docs/hardening.md).
ARG BASE=python:3.11-slim-bookworm
FROM ${BASE} AS base

# The requirements alone: other changes of pyproject.toml leave the next stage in the cache.
FROM base AS requirements
ARG EXTRAS="ingest export cli s3"
WORKDIR /src
COPY pyproject.toml ./
COPY services/pyproject.toml services/
RUN python -c "import tomllib; \
client, server = (tomllib.load(open(f, 'rb'))['project'] for f in ('pyproject.toml', 'services/pyproject.toml')); \
extras = [r for name in '$EXTRAS'.split() for r in client['optional-dependencies'][name]]; \
needed = [*client['dependencies'], *server['dependencies'], *extras]; \
print(*sorted({r for r in needed if not r.startswith('asterism-graph')}), sep='\n')" > requirements.txt

# Bytecode only of what is imported, so that it neither is compiled at every start nor doubles the size.
FROM base AS dependencies
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /opt/asterism
COPY --from=requirements /src/requirements.txt /src/
COPY .docker /src/image
RUN /opt/asterism/bin/pip install -q --no-compile -r /src/requirements.txt \
 && site=$(/opt/asterism/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))") \
 && echo /opt/asterism/packages > "$site/asterism.pth" \
 && PYTHONDONTWRITEBYTECODE=1 /opt/asterism/bin/python /src/image/reduce_packages.py "$site" \
 && rm -f /opt/asterism/bin/pip* \
 && NUMBA_CACHE_DIR=/tmp/numba /opt/asterism/bin/python /src/image/import_packages.py

FROM base AS application
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /build && /build/bin/pip install -q hatchling
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY proto proto
COPY services services
COPY client client
RUN /build/bin/pip install -q --no-deps --no-build-isolation --no-compile --target /packages . ./services \
 && python -m compileall -q --invalidation-mode unchecked-hash -s /packages -p /opt/asterism/packages /packages \
 && mkdir -p /client/bin /client/packages \
 && mv /packages/asterism /packages/asterism_graph-* /client/packages/ \
 && rm -rf /packages/bin \
 && printf '#!/opt/asterism/bin/python\nfrom asterism.cli import main\n\nmain()\n' > /client/bin/asterism \
 && chmod 755 /client/bin/asterism

# The system without what only serves its installation and login. Files are copied to an image of their own below,
# for removed files would otherwise stay in the layers of the base. Licenses of what stays, stay.
FROM base AS system
RUN useradd --system --uid 10001 --no-create-home --home-dir /var/lib/asterism asterism \
 && dpkg -L adduser apt debconf dpkg e2fsprogs gpgv libapt-pkg6.0 libdb5.3 libext2fs2 libgcrypt20 libgnutls30 libhogweed6 \
    libnettle8 libp11-kit0 libpam-modules libpam-modules-bin libpam-runtime libsystemd0 libudev1 libunistring2 login \
    logsave mount ncurses-bin openssl passwd perl-base util-linux util-linux-extra \
    python3-distutils python3-lib2to3 python3-pip python3-pip-whl python3-pkg-resources python3-setuptools \
    python3-setuptools-whl python3-wheel 2>/dev/null \
  | while read -r file; do [ -d "$file" ] || rm -f "$file"; done; \
    find /usr/lib/python3* /usr/local/lib/python3* -depth -type d \( -name ensurepip -o -name idlelib -o -name lib2to3 \
    -o -name test -o -name tests -o -name tkinter -o -name turtledemo -o -name pydoc_data -o -name 'pip*' \
    -o -name 'setuptools*' -o -name pkg_resources -o -name 'wheel*' \) -exec rm -rf {} + \
 && find /usr/share/doc -type f ! -name copyright -delete \
 && rm -rf /var/lib/apt /var/lib/dpkg/info /var/cache/* /var/log/* /usr/lib/*/gconv /usr/share/locale /usr/share/man \
    /usr/share/info /usr/share/perl* /usr/share/python-wheels /root/.cache /tmp/*

FROM scratch
COPY --from=system / /
# Arenas are few, for RocksDB's threads would keep one each.
ENV PATH=/opt/asterism/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
    PYTHONUNBUFFERED=1 NUMBA_CACHE_DIR=/var/cache/asterism MALLOC_ARENA_MAX=2
RUN install -d -o asterism -g asterism /var/lib/asterism /var/cache/asterism
COPY --from=dependencies /opt/asterism /opt/asterism
COPY --from=application /packages /opt/asterism/packages
USER asterism
WORKDIR /var/lib/asterism
# Kernels compiled here are used where the processor is the same. Elsewhere daemons compile their own at the first start.
RUN python -m asterism_standalone.kernel_compiler
COPY --from=application /client /opt/asterism
VOLUME /var/lib/asterism
CMD ["asterism", "--help"]
