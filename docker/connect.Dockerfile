# Kafka Connect with Headgate's plugins. Build it in the project's folder:
#   docker build -f docker/connect.Dockerfile -t headgate-connect .
#   docker run -e KAFKA_BOOTSTRAP_SERVERS=kafka:9092 -p 8083:8083 headgate-connect
FROM maven:3.9-eclipse-temurin-17 AS build
WORKDIR /build
COPY connect/pom.xml connect/pom.xml
COPY connect/src connect/src
COPY connect/vectors connect/vectors
# The vectors and the cases run too: an image that hashes otherwise is not made.
RUN mvn -B -f connect/pom.xml package

FROM apache/kafka:4.3.1
COPY --from=build /build/connect/target/plugins /kafka/connect/plugins
COPY docker/connect.properties /kafka/connect/connect.properties
ENV KAFKA_BOOTSTRAP_SERVERS=kafka:9092 \
    CONNECT_GROUP=connect-cluster-1 \
    CONNECT_ADVERTISED_HOST=connect \
    CONNECT_REPLICATION=1
EXPOSE 8083
USER appuser
HEALTHCHECK --start-period=30s CMD wget -q -O /dev/null http://localhost:8083/connectors
ENTRYPOINT ["/opt/kafka/bin/connect-distributed.sh", "/kafka/connect/connect.properties"]
