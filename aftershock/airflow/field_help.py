"""Help texts for the params of the trigger form: what each param does, and when to change it.

`docs/reference/experiment.md` has the definitions. Here are the words for somebody who fills in the form.
They are Markdown, without code spans: Airflow draws these over the line above.
"""

from __future__ import annotations

_START = {
    "experiment": "The run starts from this experiment: each field below that stays empty has its value. Choose the"
    " one closest to what you want to know. Files of yours in *.aftershock/experiments/* are in the list, too.",
    "experiment_file": "A YAML file on this machine to start from instead. Give its path if it is not in"
    " *.aftershock/experiments/*.",
    "host_fault_rate": "Each worker is killed at random, this often by itself. Set it to see what single failures"
    " cost, or to 0 for a control run without faults. It replaces the experiment's faults.",
    "rack_fault_rate": "Each rack dies at random, all of its workers at once. Set it to see what correlated failures"
    " cost. It replaces the experiment's faults.",
    "racks": "The workers are spread over this many racks. Set it with the rack fault rate, unless the experiment"
    " already says which worker is in which rack.",
    "time_to_heal_s": "A worker that was killed comes back after this time. Shorten it to fit more faults into a"
    " window, lengthen it to see a cluster that lacks workers for long.",
    "window_s": "Measuring and faults last this long, after the start of the cluster and before its end. The run takes"
    " about three minutes more than the window, if checkpoint intervals are short. The search of load mode"
    " *sustainable* adds about 40 checkpoint intervals, at least a minute. Lengthen the window for a tighter confidence"
    " interval: 20 faults are enough to judge the model.",
    "seed": "The moments of the faults are drawn from this number. Change it to repeat an experiment under other"
    " faults.",
    "name": "The experiment is listed under this name. Change it if you change what is measured, so that the run is"
    " not compared with runs of the example.",
    "run_id": "The run and its page have this id. Leave it empty: then it is made from name and time.",
}
_LOAD = {
    "load.mode": "Says how many records come: more than the query can take (*saturating*), a set rate (*rate*), or a"
    " share of what it can sustain (*sustainable*). Use *rate* to look at latency and lag.",
    "load.rate": "This many records come each second. Change it in mode *rate*; in mode *sustainable* the search"
    " begins here.",
    "load.share": "The window runs at this share of the sustainable rate. Lower it to leave room for catching up"
    " after a failure.",
    "load.precision": "The search ends when a rate that failed is at most this much above one that held. Lower it"
    " for a more exact rate, which takes longer.",
    "load.probes": "The search ends after this many rates. Raise it if a run says that its search ended too early.",
    "load.probe_s": "The search watches lag for this long at each rate. Raise it if lag swings; by default 8"
    " checkpoint intervals, at least 10 s.",
    "load.batch_records": "A message has this many records, as an Arrow batch, which the testbed (*dataflow*) decodes"
    " by column; its results are Arrow batches, too. Set it with workload *nexmark* to see what JSON costs; leave it"
    " empty for a record a message.",
}
_ENGINE = {
    "engine.name": "Executes the workload: Spark's own Structured Streaming, or the project's testbed (*dataflow*)."
    " Change it to compare protocols, which only the testbed has. Other fields of the engine then have their"
    " defaults.",
    "engine.checkpoint_interval_s": "A checkpoint begins this long after the last one; for micro-batches this is"
    " the trigger interval. Shorten it to lose less work to a failure, lengthen it to spend less on checkpoints.",
    "engine.recovery": "Says what the loss of a worker leads to. Change it to compare a restart of the query with a"
    " retry of tasks, or, on the testbed, which partitions roll back and when.",
    "engine.trigger": "Says whether Spark works in batches of what has arrived, or emits at once. Change it to try"
    " real-time mode, which only stateless queries have.",
    "engine.partitions": "The input topic and each operator have this many partitions. Match it to the number of"
    " cores, or raise it for a finer balance.",
    "engine.protocol": "Says how the testbed takes checkpoints. Change it to compare protocols.",
    "engine.records_per_message": "The testbed sends at most this many records in a message. Set it to 1 for what"
    " the papers ran, larger for throughput.",
    "engine.batch_length_s": "With protocols *batch-aligned* and *output-log* a batch covers this much time."
    " Shorten it for lower latency.",
    "engine.chaining": "Sources execute the maps and filters that follow them. Choose no to send every record over the"
    " network between operators.",
    "engine.standby": "This many of the testbed's slots wait idle to take the place of lost ones. Raise it to restore"
    " without waiting for a new worker.",
    "engine.tentative": "Survivors go on without the input of lost partitions and emit tentative results. Choose"
    " yes to measure how accurate these are.",
    "engine.planner": "Decides which queries are recovered first. Change it to compare planners, with recovery"
    " *query-centric*.",
    "engine.planner_limit_s": "Planner *exact* may look this long for the proof that its plan is the best. Lower it if"
    " recoveries have to begin sooner.",
    "engine.cpu_limit": "A slot gives this share of its core to partitions. Their costs are then their measured CPU"
    " times. Set it where partitions differ, with recovery *query-centric*.",
    "engine.replication_ratio": "This share of the partitions has a copy that goes on at once when a host is lost."
    " Raise it for shorter outages, with recovery *partially-active* and standby slots for the copies.",
    "engine.replication_planner": "Decides which partitions have a copy. Change it to compare planners, with recovery"
    " *partially-active*.",
    "engine.copied": "These partitions have a copy, as a list such as *[window-1.0, out.0]*. Set it to follow the"
    " advice of a run, with recovery *partially-active*.",
    "engine.standby_room": "A slot with copies also takes lost partitions, until it hosts this many. Choose 0 to keep"
    " its place for its copies, with recovery *partially-active*.",
    "engine.trim_every_s": "A sink's copy drops output that its primary has published, this often. Raise it to send"
    " fewer messages, lower it to hold less output, with recovery *partially-active*.",
    "engine.adapt_every_s": "This often, the coordinator chooses again, from measured rates, which partitions have"
    " a copy. Set it where the load moves, with recovery *partially-active* and a ratio between 0 and 1.",
    "engine.capacity": "A slot takes at most this many partitions. Lower it to see recovery while room is scarce, with"
    " recovery *query-centric*.",
    "engine.staggered": "With protocols *uncoordinated* and *communication-induced* slots take their checkpoints one"
    " after the other. Choose yes to measure what clocks that are out of step cost.",
    "engine.spare_lines": "Protocol *coordinated* keeps this many older recovery lines. Raise it if a store may"
    " lose objects; at 0, output appears soonest.",
    "engine.log_extent": "A partition saves windows when a recovery would read more entries of its log than this. Set"
    " it to bound how long reading the log takes, with protocol *output-log*.",
    "engine.log_replay": "A partition saves windows when a recovery would replay more records than this. Set it to"
    " bound the replay, with protocol *output-log*.",
    "engine.log_failure_rate": "A partition expects this many failures per second and saves windows where that pays."
    " Set it instead of a target, with protocol *output-log*.",
    "engine.check_interval_s": "A partition saves windows for this long in every check period. Raise it if the"
    " targets of the log are missed.",
    "engine.check_period_s": "A partition saves windows once in this time, for the check interval. Raise it to"
    " disturb processing less.",
    "engine.store": "The testbed keeps its checkpoints in this bucket of S3. Set it to measure checkpoints to an"
    " object store; otherwise they go to a directory of the cluster.",
    "engine.store_endpoint": "S3 is reached at this address. Set it for a store that is not AWS.",
}
_WORKLOAD = {
    "workload.name": "Says which query runs. Change it to measure another kind of job; fields of other workloads"
    " must then stay empty.",
    "workload.window_s": "The query's windows are this long. Lengthen them for more state to restore.",
    "workload.slide_s": "The next window begins this many seconds later. Shorten it for more windows at once.",
    "workload.depth": "wordcount: this many stateful operators follow each other. Raise it to see how failures"
    " cost deeper queries more; 0 keeps no state.",
    "workload.corpus": "wordcount: the words come from this file or folder. Set it to count your own text.",
    "workload.corpus_mb": "wordcount: this much of the text is used. Lower it on a machine that is short of memory.",
    "workload.query": "nexmark: the number of the query. Change it for another kind of operator: q1 maps, q3 joins,"
    " q12 counts.",
    "workload.hot_auctions": "nexmark: this share of bids is for one auction. Raise it for more skew.",
    "workload.hot_bidders": "nexmark: this share of bids is by one person. Raise it for more skew.",
    "workload.hot_sellers": "nexmark: this share of auctions is by one person. Raise it for more skew.",
    "workload.stream_seed": "The events are drawn from this number. Change it to repeat a run on other events.",
    "workload.nodes": "reachability: the graph has this many nodes. Raise it for a longer or faster run: at most two"
    " events may come for each node, unless the graph is steady.",
    "workload.steady": "reachability: events delete as much as they create, and the graph keeps its size. Switch it on"
    " for a long run, with 36,000 nodes and one for each event of a checkpoint interval.",
    "workload.parallelism": "window-tree, top-100, incidents: partitions of the source and of each operator after"
    " it, as a list such as *[16, 8, 4]*. Change it for a wider or deeper dataflow.",
    "workload.selectivity": "window-tree: each operator passes on this share of its input. Lower it for less traffic"
    " further down.",
    "workload.entries": "top-100: the site has this many entries. Raise it for more state.",
    "workload.moves_every": "window-tree: after this many tuples, another quarter of the sources has most of the load."
    " Set it to see copies follow the load, with *engine.adapt_every_s*.",
    "workload.skew": "top-100, incidents: exponent of the Zipf law of requests or users. Raise it for more skew.",
    "workload.binding": "top-100: says whether an entry is on one server, or on every server. Change it to see"
    " what the loss of one server takes away.",
    "workload.users": "incidents: about this many users report. Raise it with the load.",
    "workload.segments": "incidents: there are this many road segments. Raise it for more state.",
    "workload.events_per_incident": "incidents: an incident happens after this many events. Lower it if a window holds"
    " too few incidents to judge accuracy.",
    "workload.jam_share": "incidents: this share of incidents slows traffic down. Raise it to have more to detect.",
    "workload.topology": "hashtags: which queries there are. Change it between the two topologies of the paper.",
    "workload.hashtags": "hashtags: there are this many different hashtags. Raise it for more state.",
    "workload.priorities": "hashtags: the priority of each query, as a list such as *[3, 1]*. Change it to say which"
    " query should come back first.",
    "workload.items": "cec-prices: there are this many different items. Raise it for more state.",
    "workload.window_records": "cec-prices: a window has this many purchases of an item. Raise it for more state and"
    " fewer results.",
    "workload.least_price": "cec-prices: a filter drops cheaper purchases. Raise it to have fewer records behind the"
    " filter; 0 is no filter.",
    "workload.program": "own-job: the path of your PySpark program. Give it to measure a job of your own.",
    "workload.arguments": "own-job: the program's arguments, one on a line. Change them to run your job differently.",
    "workload.modules": "own-job: files and folders that the program imports or reads, one on a line. Name all that"
    " it needs.",
    "workload.conf": "own-job: further settings of spark-submit, such as *{spark.sql.shuffle.partitions: 4}*. Set"
    " what your job needs.",
    "workload.inputs": "own-job: where the records of each input topic come from, such as *{orders: {file: /path}}*."
    " Change it to feed your job other data.",
    "workload.output_topic": "own-job: the topic that the program writes to. Leave it empty if it writes to none.",
    "workload.oracle": "own-job: the path of a program that computes the exact results. Give it to have lost and"
    " duplicated results counted.",
}
_CLUSTER = {
    "cluster.driver": "Says what a host is: processes (*local*), network namespaces (*netns*), containers (*docker*),"
    " machines (*ssh*), or part of an existing cluster (*external*). Change it for faults of networks and"
    " disks; *aftershock doctor* says what works here.",
    "cluster.workers": "This many hosts can be killed. Raise it if the machine has the cores.",
    "cluster.worker_cores": "Spark uses this many cores on each worker. Raise it if the machine has more cores than"
    " workers.",
    "cluster.worker_memory_mb": "Spark may use this much memory on each worker. Raise it if executors run out of"
    " memory.",
    "cluster.worker_disk_mb": "A worker's own disk, in memory, has this size. Only drivers netns and docker have one."
    " Lower it to fill a disk sooner.",
    "cluster.inventory": "With driver ssh: the JSON file that lists your machines. With driver external: the one that"
    " describes your cluster. Give its path.",
}
_FAULTS = {
    "faults.duration": "Faults begin within this many seconds of the window's start. Shorten it to see the last one"
    " healed before the window ends.",
    "faults.max_down": "This many hosts at most are down at once. Set it to keep a cluster alive under many faults.",
    "faults.time_scale": "This many seconds stand for one of the cloud, where a new machine takes 2 to 6 minutes."
    " Lower it so that faults without a time to heal end sooner.",
    "faults.trace": "A CSV or JSON file of faults that happened somewhere, which are replayed. Give it to repeat a"
    " real incident.",
    "faults": "The whole fault spec as YAML: every kind of fault, other laws, faults at set times. Write it if the"
    " plain fields cannot say what should fail; it replaces all of the experiment's faults. *docs/guides/faults.md*"
    " has examples.",
}
_TOLERANCES = {
    "tolerances.lateness_s": "A fault may be this late, at p99. Raise it on a machine that is busy with other things.",
    "tolerances.utilization": "Measured and replayed utilization may differ by this much, from 20 faults on; by twice"
    " that with fewer. Raise it only if you know why they differ.",
    "tolerances.estimates": "The two measured estimates of utilization, by time and by records, may differ by"
    " this much. Raise it for windows of few checkpoints.",
    "tolerances.ledger_share": "The ledger's sum and the window may differ by this share of the window. Leave it"
    " empty: there is hardly a reason to change it.",
}
SENTENCES = _START | _LOAD | _ENGINE | _WORKLOAD | _CLUSTER | _FAULTS | _TOLERANCES
