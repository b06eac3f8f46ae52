"""Revenue by shop and window of five seconds: orders from one Kafka topic, totals to another."""

import argparse

from money import cents
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

ORDER = "order STRING, shop STRING, price STRING, ordered_at TIMESTAMP"

parser = argparse.ArgumentParser()
for name in ("--brokers", "--orders", "--totals", "--checkpoint", "--every"):
    parser.add_argument(name, required=True)
options = parser.parse_args()

spark = SparkSession.builder.appName("revenue").config("spark.sql.session.timeZone", "UTC").getOrCreate()
messages = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", options.brokers)
    .option("subscribe", options.orders)
    .option("startingOffsets", "earliest")
    .load()
)
orders = messages.select(F.from_json(F.col("value").cast("string"), ORDER).alias("order")).select("order.*")
priced = orders.withColumn("cents", F.udf(cents, "long")("price"))
totals = (
    priced.withWatermark("ordered_at", "2 seconds")
    .groupBy(F.window("ordered_at", "5 seconds"), "shop")
    .agg(F.count("*").alias("orders"), F.sum("cents").alias("cents"))
)
(
    totals.select(F.col("shop").alias("key"), F.to_json(F.struct("window", "shop", "orders", "cents")).alias("value"))
    .writeStream.format("kafka")
    .option("kafka.bootstrap.servers", options.brokers)
    .option("topic", options.totals)
    .option("checkpointLocation", options.checkpoint)
    .trigger(processingTime=options.every)
    .start()
    .awaitTermination()
)
