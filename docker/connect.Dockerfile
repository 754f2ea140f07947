# Kafka Connect with Headgate's plugins. Build it in the project's folder:
#   docker build -f docker/connect.Dockerfile -t headgate-connect .
#   docker run -e KAFKA_BOOTSTRAP_SERVERS=kafka:9092 -p 8083:8083 -p 9404:9404 headgate-connect
FROM maven:3.9-eclipse-temurin-17 AS build
WORKDIR /build
COPY java/connect-plugins/pom.xml java/connect-plugins/pom.xml
COPY java/connect-plugins/src java/connect-plugins/src
COPY java/connect-plugins/vectors java/connect-plugins/vectors
# The vectors and the cases run too: an image that hashes otherwise is not made.
RUN mvn -B -f java/connect-plugins/pom.xml package
# Shows the plugins' counters (dq_smt_*) to Prometheus; without it nobody could read them.
ARG JMX_EXPORTER=1.0.1
RUN mvn -B dependency:copy -DoutputDirectory=/build/agent -Dmdep.stripVersion=true \
    -Dartifact=io.prometheus.jmx:jmx_prometheus_javaagent:${JMX_EXPORTER}

FROM apache/kafka:4.3.1
COPY --from=build /build/java/connect-plugins/target/plugins /kafka/connect/plugins
COPY --from=build /build/agent/jmx_prometheus_javaagent.jar /kafka/connect/agent.jar
COPY src/headgate/local/connect_metrics.yml /kafka/connect/metrics.yml
COPY docker/connect.properties /kafka/connect/connect.properties
ENV KAFKA_BOOTSTRAP_SERVERS=kafka:9092 \
    CONNECT_GROUP=connect-cluster-1 \
    CONNECT_ADVERTISED_HOST=connect \
    CONNECT_REPLICATION=1
ENV KAFKA_OPTS=-javaagent:/kafka/connect/agent.jar=9404:/kafka/connect/metrics.yml
EXPOSE 8083 9404
USER appuser
HEALTHCHECK --start-period=30s CMD wget -q -O /dev/null http://localhost:8083/connectors
ENTRYPOINT ["/opt/kafka/bin/connect-distributed.sh", "/kafka/connect/connect.properties"]
