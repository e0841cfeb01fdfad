# A league with its pages at http://localhost:8080. They ask for a token, which this prints:
#   docker exec NAME sh -c 'cat runs/*/tokens/operator.token'
#
#   docker build -t kumite .                                          # for the CPU
#   docker build -t kumite --build-arg UV_TORCH_BACKEND=cu128 .       # for NVIDIA GPUs: CUDA 12.8
#   docker run --name league -p 127.0.0.1:8080:8080 -v kumite-runs:/kumite/runs kumite
#   docker run --gpus all --name league -p 127.0.0.1:8080:8080 -v kumite-runs:/kumite/runs kumite --preset full
#
# For nodes of a Ray cluster (deploy/kuberay): --build-arg EXTRAS=cluster. KubeRay's probes need wget.
FROM python:3.11-slim
ARG UV_TORCH_BACKEND=cpu
ARG EXTRAS=
RUN if [ -n "$EXTRAS" ]; then apt-get update && apt-get install -y --no-install-recommends wget; fi
RUN useradd --create-home --uid 1000 kumite && mkdir -p /kumite/runs && chown -R kumite /kumite
USER kumite
WORKDIR /kumite
COPY --chown=kumite . .
RUN UV_TORCH_BACKEND=${UV_TORCH_BACKEND} bin/bootstrap
RUN if [ -n "$EXTRAS" ]; then UV_TORCH_BACKEND=${UV_TORCH_BACKEND} .venv/bin/uv pip install \
    --python .venv/bin/python --constraints requirements.lock --editable ".[$EXTRAS]"; fi
ENV PATH=/kumite/.venv/bin:$PATH
VOLUME /kumite/runs
# brawl's machine code, also for a user (docker run --user) who can write neither code nor home
ENV NUMBA_CACHE_DIR=/tmp/kumite-numba
EXPOSE 8080
STOPSIGNAL SIGINT
ENTRYPOINT ["bin/start-league", "--headless", "--dashboard", "0.0.0.0:8080"]
