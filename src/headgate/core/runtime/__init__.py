"""What runs beside Python: Java, jars, our compiled Java code; and files that survive a kill.

`java` finds a Java that Spark and Kafka run on, `bundles` fetches locked jars with the Ivy inside
PySpark, `java_build` compiles our own sources, `class_archive` makes JVMs start sooner. `journal` is
for long commands that can be interrupted and resumed.
`java` and `bundles` run during setup, before any package is installed: they import the standard
library and `headgate.errors` alone.
"""
