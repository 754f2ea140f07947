# A dealer's consumer; the configuration says which. Build it in the project's folder:
#   docker build -f docker/consumer.Dockerfile -t headgate-consumer .
#   docker run -e KAFKA_BOOTSTRAP_SERVERS=kafka:9092 -v dealer-001:/state \
#     headgate-consumer consumers/dealer-001/consumer.yml
FROM python:3.11-slim AS build
WORKDIR /build
COPY pyproject.toml README.md LICENSE ./
COPY src src
COPY java/spark-functions java/spark-functions
RUN pip install --no-cache-dir --prefix=/installed ".[kafka]"

FROM python:3.11-slim
COPY --from=build /installed /usr/local
WORKDIR /consumer
COPY consumers consumers
# What was handled must outlive the container: without a volume there, records are handled again.
RUN useradd --system --uid 10001 consumer && install -d -o consumer /state
ENV HEADGATE_HOME=/state PYTHONUNBUFFERED=1
VOLUME /state
USER consumer
ENTRYPOINT ["headgate", "filters", "consumer"]
CMD ["consumers/dealer-001/consumer.yml"]
