# The image of the action. GitHub's runner starts it as root in /github/workspace, so there is no USER and no WORKDIR,
# and Python runs isolated (-I): nothing in the workspace or in the job's PYTHON* variables is imported.
# It is assembled from parts of Debian and Python instead of adding layers to their image, so it has no installer, no
# compiler and no Perl.

FROM python:3.13-slim AS system
# The standard library comes without bytecode. The bytecode made here is never checked against its source, since the
# layer is read-only; that saves two thirds of the start.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates git \
 && rm -rf /var/lib/apt/lists/* \
 && python -W ignore -m compileall -q -f --invalidation-mode unchecked-hash -x '/(test|tests|idlelib|tkinter|turtledemo)/' \
    /usr/local/lib/python3.13

FROM system AS libraries
# Every image has a text model, whose weights are pinned by hash (docs/semantic.md); MODEL=0 leaves the weights out.
ARG MODEL=1
# SERVER=1 adds what the webhook server needs (docs/self-hosting.md), ORG=1 the engine of the organisation's index too
# (320 MB).
ARG SERVER=0
ARG ORG=0
COPY requirements*.lock tools/image_sbom.py tools/image_trim.py tools/image_root.py /build/
COPY tools/minilm.py /build/tools/
RUN mkdir /models /data \
 && case "$SERVER$ORG" in \
      00) ln -s requirements.lock /build/chosen.lock ;; \
      10) ln -s requirements-server.lock /build/chosen.lock ;; \
      11) ln -s requirements-org.lock /build/chosen.lock ;; \
      *) echo "ORG=1 needs SERVER=1; given: $SERVER, $ORG" >&2; exit 1 ;; \
    esac
RUN python -m venv --without-pip /opt/precedent \
 && python -m pip --python /opt/precedent/bin/python install --no-cache-dir --no-compile --no-deps --only-binary :all: \
    --require-hashes -r /build/chosen.lock \
 && if [ "$MODEL" != 0 ]; then \
      PYTHONPATH=/build:/opt/precedent/lib/python3.13/site-packages python -m tools.minilm /models; \
    fi \
 && python -I /build/image_trim.py /opt/precedent/lib/python3.13/site-packages \
 && python -W ignore -m compileall -q -f --invalidation-mode unchecked-hash /opt/precedent/lib
RUN python -I /build/image_root.py /image /opt/precedent \
 && mkdir /image/usr/share/precedent \
 && python -I /build/image_sbom.py /image /opt/precedent/lib/python3.13/site-packages /models \
    > /image/usr/share/precedent/sbom.cdx.json

FROM system AS code
COPY bot /opt/precedent/lib/python3.13/site-packages/bot
COPY templates /opt/precedent/lib/python3.13/site-packages/templates
RUN python -W ignore -m compileall -q -f --invalidation-mode unchecked-hash /opt/precedent/lib

FROM scratch
LABEL org.opencontainers.image.title="Precedent" \
      org.opencontainers.image.description="Gives a repository a memory of its issues and of how they ended" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=libraries /image /
COPY --from=libraries /models /models
# A new volume of the server inherits this owner.
COPY --from=libraries --chown=10001:10001 /data /data
COPY --from=libraries /opt/precedent /opt/precedent
COPY LICENSE /opt/precedent/
COPY --from=code /opt/precedent/lib /opt/precedent/lib
ENTRYPOINT ["/opt/precedent/bin/python", "-I", "-m", "bot"]
CMD ["action"]
