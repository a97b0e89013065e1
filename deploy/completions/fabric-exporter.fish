# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_fabric_exporter_global_optspecs
    string join \n color= h/help V/version
end

function __fish_fabric_exporter_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_fabric_exporter_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_fabric_exporter_using_subcommand
    set -l cmd (__fish_fabric_exporter_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c fabric-exporter -n "__fish_fabric_exporter_needs_command" -l color -d 'Color the output: auto, always or never [default: auto]' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Also in a file or pipe'
never\t'Not at all'"
complete -c fabric-exporter -n "__fish_fabric_exporter_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c fabric-exporter -n "__fish_fabric_exporter_needs_command" -s V -l version -d 'Print version'
complete -c fabric-exporter -n "__fish_fabric_exporter_needs_command" -f -a "serve" -d 'Sweep the fabric at intervals and serve its metrics over HTTP'
complete -c fabric-exporter -n "__fish_fabric_exporter_needs_command" -f -a "links" -d 'Sweep the fabric once and list its links, worst first'
complete -c fabric-exporter -n "__fish_fabric_exporter_needs_command" -f -a "top" -d 'Show the worst cables, the busiest links, congestion and events live'
complete -c fabric-exporter -n "__fish_fabric_exporter_needs_command" -f -a "nodes" -d 'List the switches, channel adapters and routers of the fabric'
complete -c fabric-exporter -n "__fish_fabric_exporter_needs_command" -f -a "ports" -d 'List the ports of a node with their counters'
complete -c fabric-exporter -n "__fish_fabric_exporter_needs_command" -f -a "doctor" -d 'Check what the exporter needs on this host, and print the fix for each problem'
complete -c fabric-exporter -n "__fish_fabric_exporter_needs_command" -f -a "history" -d 'Query the recorded history: events, counters, reports and exports'
complete -c fabric-exporter -n "__fish_fabric_exporter_needs_command" -f -a "check" -d 'Validate the config file and all files that it names'
complete -c fabric-exporter -n "__fish_fabric_exporter_needs_command" -f -a "demo" -d 'Serve a simulated fabric with faults, without any InfiniBand hardware'
complete -c fabric-exporter -n "__fish_fabric_exporter_needs_command" -f -a "completions" -d 'Print a shell completion script'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l config.file -d 'YAML file with settings' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.name -d 'Value of the "fabric" label [default: default]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.hca -d 'HCA to use [default: first usable]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.port -d 'Port to use [default: first that is up]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.interval -d 'Sweep interval [default: 15s]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.discovery-interval -d 'Discovery interval [default: 5m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.forget-after -d 'How long missing nodes are reported as down [default: 7d]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.node-name-map -d 'File with names for nodes' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.host-regex -d 'The host in the name of an HCA' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.totals-from -d 'Another exporter of the same fabric' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.totals-password-file -d 'File with the password for the other exporter' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.totals-ca-file -d 'CA certificates for the other exporter (PEM) [default: those of the system]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.totals-cert-file -d 'Client certificate for the other exporter (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.totals-key-file -d 'Private key of that certificate (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.m-key-file -d 'File with the M_Key of the fabric' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.vs-key-file -d 'File with the VSKeys of devices' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.pkey -d 'P_Key for performance management' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.details -d 'Read error details in each sweep [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.details-interval -d 'How often to read error details [default: 2m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.fec -d 'Read FEC counters [default: true]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.physical-interval -d 'How often to read bit error ratios and errors by lane [default: 1m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.lanes -d 'Export errors by lane, the FEC histogram and details of lasers [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.module-interval -d 'How often to read transceivers and cables [default: 10m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.environment-interval -d 'How often to read uptime and temperature of devices [default: 1m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.clear-saturated -d 'Clear nearly saturated counters [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.smp-window -d 'Window of subnet management MADs [default: 8]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.gmp-window -d 'Window of performance management MADs [default: 128]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.smp-lid-window -d 'Subnet management MADs in flight per LID [default: 2]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.gmp-lid-window -d 'Performance management MADs in flight per LID [default: 4]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.timeout -d 'Response timeout of a MAD [default: 500ms]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.retries -d 'Retries after a timeout [default: 2]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.capture -d 'Record all MADs in this file' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.capture-limit -d 'Size limit of the capture in MiB [default: 100]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l host.interval -d 'Interval of host reads [default: 15s]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l host.device-include -d 'Read only matching devices' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l host.device-exclude -d 'Do not read matching devices' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l host.error-backoff -d 'Retry interval for unreadable files [default: 5m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l host.events -d 'Receive device and kernel events [default: true]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l host.ethtool -d 'Read Ethernet driver statistics [default: true]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l host.modules -d 'Read cables and modules of Ethernet ports [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l host.cm-counters -d 'Read connection manager counters [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l health.maintenance-file -d 'File with planned maintenance' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l health.drained-hosts-file -d 'File with drained hosts' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l health.ber-confidence -d 'Certainty that a bit error ratio is above its limit [default: high]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l health.flap-days -d 'Days with flaps until a link is degraded [default: 3]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l health.flap-window -d 'Time in which these days count [default: 14d]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l history.file -d 'Record each sweep in this file' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l history.size -d 'Size limit of that file [default: 1GiB]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l history.traffic-retention -d 'Retention of traffic per sweep [default: 24h]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l history.retention -d 'Retention of everything else [default: 30d]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l web.listen-address -d 'Listen address [default: :10315]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l web.telemetry-path -d 'Path of the metrics [default: /metrics]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l web.profile -d 'Metrics of a scrape without parameters [default: full]' -r -f -a "full\t'All groups'
lean\t'What most alerts need: verdicts, names, states, bytes and wait ratios'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l web.allowed-hosts -d 'Host names of requests [default: all]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l web.external-url -d 'URL under which users reach the exporter' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l web.grafana-url -d 'URL of a Grafana that has the dashboards' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l web.config.file -d 'Web config file: TLS, users, headers' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l web.systemd-socket -d 'Use systemd socket activation [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l log.level -d 'Minimum log level [default: info]' -r -f -a "error\t''
warn\t''
info\t''
debug\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l log.format -d 'Format of log lines [default: logfmt]' -r -f -a "logfmt\t'`key=value` pairs'
json\t'One JSON object per line'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l process.confine -d 'Sandbox the process after start-up [default: true]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l process.user -d 'User that "serve" becomes when root starts it [default: fabric-exporter, else nobody]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l process.allow-root -d 'Stay root when root starts "serve" [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l path.sysfs -d 'Mount point of sysfs [default: /sys]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l path.procfs -d 'Mount point of procfs [default: /proc]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l color -d 'Color the output: auto, always or never [default: auto]' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Also in a file or pipe'
never\t'Not at all'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.registers -d 'Read registers of NVIDIA devices (on by default)'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l no-fabric.registers -d 'Do not read registers of NVIDIA devices'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l collector.fabric -d 'Sweep the fabric (on by default)'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l no-collector.fabric -d 'Do not sweep the fabric'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l collector.host -d 'Read this host\'s RDMA devices (on by default)'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l no-collector.host -d 'Do not read this host\'s RDMA devices'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l node -d 'Only links of this node or port' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l serial -d 'Only links whose cable or module has this serial number' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l verdict -d 'Only these verdicts' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l reason -d 'Only verdicts with these reasons' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l sort -d 'Order [default: verdict]' -r -f -a "verdict\t'The worst first'
node\t'By the name of end A'
errors\t'The most link errors first'
ber\t'The highest bit error ratio first'
flaps\t'The most flaps first'
wait\t'The highest wait ratio first'
change\t'The latest link down or up first'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l limit -d 'List at most this many' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l watch -d 'Repeat at this interval [default: 5s]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fail-on -d 'Exit with 7 if a selected link is bad, or a node down' -r -f -a "bad\t'Bad'
watch\t'Bad or degraded'
unknown\t'Bad, degraded or unknown, also while learning'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l for -d 'Keep sweeping for this time [default: one sweep]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l from -d 'Judge dumps of other tools instead of sweeping' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l between -d 'Time between the dumps, if the files do not contain it' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric -d 'Show only this fabric' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l config.file -d 'Config file of the "serve" command' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l url -d 'Query a running exporter instead' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l source.ca-file -d 'CA certificates for https:// (PEM) [default: those of the system]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l source.cert-file -d 'Client certificate (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l source.key-file -d 'Private key of the client certificate (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l source.password-file -d 'File with the password for HTTP basic authentication' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.name -d 'Value of the "fabric" label [default: default]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.hca -d 'HCA to use [default: first usable]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.port -d 'Port to use [default: first that is up]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.interval -d 'Sweep interval [default: 15s]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.discovery-interval -d 'Discovery interval [default: 5m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.forget-after -d 'How long missing nodes are reported as down [default: 7d]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.node-name-map -d 'File with names for nodes' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.host-regex -d 'The host in the name of an HCA' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.totals-from -d 'Another exporter of the same fabric' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.totals-password-file -d 'File with the password for the other exporter' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.totals-ca-file -d 'CA certificates for the other exporter (PEM) [default: those of the system]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.totals-cert-file -d 'Client certificate for the other exporter (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.totals-key-file -d 'Private key of that certificate (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.m-key-file -d 'File with the M_Key of the fabric' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.vs-key-file -d 'File with the VSKeys of devices' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.pkey -d 'P_Key for performance management' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.details -d 'Read error details in each sweep [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.details-interval -d 'How often to read error details [default: 2m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.fec -d 'Read FEC counters [default: true]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.physical-interval -d 'How often to read bit error ratios and errors by lane [default: 1m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.lanes -d 'Export errors by lane, the FEC histogram and details of lasers [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.module-interval -d 'How often to read transceivers and cables [default: 10m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.environment-interval -d 'How often to read uptime and temperature of devices [default: 1m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.clear-saturated -d 'Clear nearly saturated counters [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.smp-window -d 'Window of subnet management MADs [default: 8]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.gmp-window -d 'Window of performance management MADs [default: 128]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.smp-lid-window -d 'Subnet management MADs in flight per LID [default: 2]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.gmp-lid-window -d 'Performance management MADs in flight per LID [default: 4]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.timeout -d 'Response timeout of a MAD [default: 500ms]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.retries -d 'Retries after a timeout [default: 2]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.capture -d 'Record all MADs in this file' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.capture-limit -d 'Size limit of the capture in MiB [default: 100]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l path.sysfs -d 'Mount point of sysfs [default: /sys]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l path.procfs -d 'Mount point of procfs [default: /proc]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l color -d 'Color the output: auto, always or never [default: auto]' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Also in a file or pipe'
never\t'Not at all'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l suspect -d 'List only suspect links'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l spares -d 'List the spares that are needed now, by part number'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l json -d 'Write JSON, in the same order'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l wide -d 'Write all columns, one line per row'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.registers -d 'Read registers of NVIDIA devices (on by default)'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l no-fabric.registers -d 'Do not read registers of NVIDIA devices'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l refresh -d 'Time between two updates [default: 5s]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l fabric -d 'Show only this fabric' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l config.file -d 'Config file of the "serve" command' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l url -d 'Query a running exporter instead' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l source.ca-file -d 'CA certificates for https:// (PEM) [default: those of the system]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l source.cert-file -d 'Client certificate (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l source.key-file -d 'Private key of the client certificate (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l source.password-file -d 'File with the password for HTTP basic authentication' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l fabric.name -d 'Value of the "fabric" label [default: default]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l fabric.hca -d 'HCA to use [default: first usable]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l fabric.port -d 'Port to use [default: first that is up]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l fabric.interval -d 'Sweep interval [default: 15s]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l fabric.discovery-interval -d 'Discovery interval [default: 5m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l fabric.forget-after -d 'How long missing nodes are reported as down [default: 7d]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l fabric.node-name-map -d 'File with names for nodes' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l fabric.host-regex -d 'The host in the name of an HCA' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l fabric.totals-from -d 'Another exporter of the same fabric' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l fabric.totals-password-file -d 'File with the password for the other exporter' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l fabric.totals-ca-file -d 'CA certificates for the other exporter (PEM) [default: those of the system]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l fabric.totals-cert-file -d 'Client certificate for the other exporter (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l fabric.totals-key-file -d 'Private key of that certificate (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l fabric.m-key-file -d 'File with the M_Key of the fabric' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l fabric.vs-key-file -d 'File with the VSKeys of devices' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l fabric.pkey -d 'P_Key for performance management' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l fabric.details -d 'Read error details in each sweep [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l fabric.details-interval -d 'How often to read error details [default: 2m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l fabric.fec -d 'Read FEC counters [default: true]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l fabric.physical-interval -d 'How often to read bit error ratios and errors by lane [default: 1m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l fabric.lanes -d 'Export errors by lane, the FEC histogram and details of lasers [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l fabric.module-interval -d 'How often to read transceivers and cables [default: 10m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l fabric.environment-interval -d 'How often to read uptime and temperature of devices [default: 1m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l fabric.clear-saturated -d 'Clear nearly saturated counters [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l fabric.smp-window -d 'Window of subnet management MADs [default: 8]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l fabric.gmp-window -d 'Window of performance management MADs [default: 128]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l fabric.smp-lid-window -d 'Subnet management MADs in flight per LID [default: 2]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l fabric.gmp-lid-window -d 'Performance management MADs in flight per LID [default: 4]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l fabric.timeout -d 'Response timeout of a MAD [default: 500ms]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l fabric.retries -d 'Retries after a timeout [default: 2]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l fabric.capture -d 'Record all MADs in this file' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l fabric.capture-limit -d 'Size limit of the capture in MiB [default: 100]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l path.sysfs -d 'Mount point of sysfs [default: /sys]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l path.procfs -d 'Mount point of procfs [default: /proc]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l color -d 'Color the output: auto, always or never [default: auto]' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Also in a file or pipe'
never\t'Not at all'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l fabric.registers -d 'Read registers of NVIDIA devices (on by default)'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -l no-fabric.registers -d 'Do not read registers of NVIDIA devices'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand top" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l type -d 'Only nodes of this type' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l node -d 'Only this node' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l verdict -d 'Only nodes whose worst link has this verdict' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l sort -d 'Order [default: verdict]' -r -f -a "verdict\t'The worst first'
node\t'By name'
type\t'By type'
lid\t'By LID'
temperature\t'The hottest first'
firmware\t'By device and firmware'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l limit -d 'List at most this many' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l watch -d 'Repeat at this interval [default: 5s]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l fail-on -d 'Exit with 7 if a selected link is bad, or a node down' -r -f -a "bad\t'Bad'
watch\t'Bad or degraded'
unknown\t'Bad, degraded or unknown, also while learning'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l for -d 'Keep sweeping for this time [default: one sweep]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l from -d 'Judge dumps of other tools instead of sweeping' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l between -d 'Time between the dumps, if the files do not contain it' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l fabric -d 'Show only this fabric' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l config.file -d 'Config file of the "serve" command' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l url -d 'Query a running exporter instead' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l source.ca-file -d 'CA certificates for https:// (PEM) [default: those of the system]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l source.cert-file -d 'Client certificate (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l source.key-file -d 'Private key of the client certificate (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l source.password-file -d 'File with the password for HTTP basic authentication' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l fabric.name -d 'Value of the "fabric" label [default: default]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l fabric.hca -d 'HCA to use [default: first usable]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l fabric.port -d 'Port to use [default: first that is up]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l fabric.interval -d 'Sweep interval [default: 15s]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l fabric.discovery-interval -d 'Discovery interval [default: 5m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l fabric.forget-after -d 'How long missing nodes are reported as down [default: 7d]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l fabric.node-name-map -d 'File with names for nodes' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l fabric.host-regex -d 'The host in the name of an HCA' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l fabric.totals-from -d 'Another exporter of the same fabric' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l fabric.totals-password-file -d 'File with the password for the other exporter' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l fabric.totals-ca-file -d 'CA certificates for the other exporter (PEM) [default: those of the system]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l fabric.totals-cert-file -d 'Client certificate for the other exporter (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l fabric.totals-key-file -d 'Private key of that certificate (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l fabric.m-key-file -d 'File with the M_Key of the fabric' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l fabric.vs-key-file -d 'File with the VSKeys of devices' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l fabric.pkey -d 'P_Key for performance management' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l fabric.details -d 'Read error details in each sweep [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l fabric.details-interval -d 'How often to read error details [default: 2m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l fabric.fec -d 'Read FEC counters [default: true]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l fabric.physical-interval -d 'How often to read bit error ratios and errors by lane [default: 1m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l fabric.lanes -d 'Export errors by lane, the FEC histogram and details of lasers [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l fabric.module-interval -d 'How often to read transceivers and cables [default: 10m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l fabric.environment-interval -d 'How often to read uptime and temperature of devices [default: 1m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l fabric.clear-saturated -d 'Clear nearly saturated counters [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l fabric.smp-window -d 'Window of subnet management MADs [default: 8]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l fabric.gmp-window -d 'Window of performance management MADs [default: 128]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l fabric.smp-lid-window -d 'Subnet management MADs in flight per LID [default: 2]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l fabric.gmp-lid-window -d 'Performance management MADs in flight per LID [default: 4]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l fabric.timeout -d 'Response timeout of a MAD [default: 500ms]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l fabric.retries -d 'Retries after a timeout [default: 2]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l fabric.capture -d 'Record all MADs in this file' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l fabric.capture-limit -d 'Size limit of the capture in MiB [default: 100]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l path.sysfs -d 'Mount point of sysfs [default: /sys]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l path.procfs -d 'Mount point of procfs [default: /proc]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l color -d 'Color the output: auto, always or never [default: auto]' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Also in a file or pipe'
never\t'Not at all'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l down -d 'Only nodes that are down: missing or unresponsive'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l json -d 'Write JSON, in the same order'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l wide -d 'Write all columns, one line per row'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l fabric.registers -d 'Read registers of NVIDIA devices (on by default)'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -l no-fabric.registers -d 'Do not read registers of NVIDIA devices'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand nodes" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l verdict -d 'Only these verdicts' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l reason -d 'Only verdicts with these reasons' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l sort -d 'Order [default: port]' -r -f -a "port\t'By number'
verdict\t'The worst first'
errors\t'The most link errors first'
wait\t'The highest wait ratio first'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l limit -d 'List at most this many' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l watch -d 'Repeat at this interval [default: 5s]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l fail-on -d 'Exit with 7 if a selected link is bad, or a node down' -r -f -a "bad\t'Bad'
watch\t'Bad or degraded'
unknown\t'Bad, degraded or unknown, also while learning'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l for -d 'Keep sweeping for this time [default: one sweep]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l from -d 'Judge dumps of other tools instead of sweeping' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l between -d 'Time between the dumps, if the files do not contain it' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l fabric -d 'Show only this fabric' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l config.file -d 'Config file of the "serve" command' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l url -d 'Query a running exporter instead' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l source.ca-file -d 'CA certificates for https:// (PEM) [default: those of the system]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l source.cert-file -d 'Client certificate (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l source.key-file -d 'Private key of the client certificate (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l source.password-file -d 'File with the password for HTTP basic authentication' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l fabric.name -d 'Value of the "fabric" label [default: default]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l fabric.hca -d 'HCA to use [default: first usable]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l fabric.port -d 'Port to use [default: first that is up]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l fabric.interval -d 'Sweep interval [default: 15s]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l fabric.discovery-interval -d 'Discovery interval [default: 5m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l fabric.forget-after -d 'How long missing nodes are reported as down [default: 7d]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l fabric.node-name-map -d 'File with names for nodes' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l fabric.host-regex -d 'The host in the name of an HCA' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l fabric.totals-from -d 'Another exporter of the same fabric' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l fabric.totals-password-file -d 'File with the password for the other exporter' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l fabric.totals-ca-file -d 'CA certificates for the other exporter (PEM) [default: those of the system]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l fabric.totals-cert-file -d 'Client certificate for the other exporter (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l fabric.totals-key-file -d 'Private key of that certificate (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l fabric.m-key-file -d 'File with the M_Key of the fabric' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l fabric.vs-key-file -d 'File with the VSKeys of devices' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l fabric.pkey -d 'P_Key for performance management' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l fabric.details -d 'Read error details in each sweep [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l fabric.details-interval -d 'How often to read error details [default: 2m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l fabric.fec -d 'Read FEC counters [default: true]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l fabric.physical-interval -d 'How often to read bit error ratios and errors by lane [default: 1m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l fabric.lanes -d 'Export errors by lane, the FEC histogram and details of lasers [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l fabric.module-interval -d 'How often to read transceivers and cables [default: 10m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l fabric.environment-interval -d 'How often to read uptime and temperature of devices [default: 1m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l fabric.clear-saturated -d 'Clear nearly saturated counters [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l fabric.smp-window -d 'Window of subnet management MADs [default: 8]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l fabric.gmp-window -d 'Window of performance management MADs [default: 128]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l fabric.smp-lid-window -d 'Subnet management MADs in flight per LID [default: 2]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l fabric.gmp-lid-window -d 'Performance management MADs in flight per LID [default: 4]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l fabric.timeout -d 'Response timeout of a MAD [default: 500ms]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l fabric.retries -d 'Retries after a timeout [default: 2]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l fabric.capture -d 'Record all MADs in this file' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l fabric.capture-limit -d 'Size limit of the capture in MiB [default: 100]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l path.sysfs -d 'Mount point of sysfs [default: /sys]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l path.procfs -d 'Mount point of procfs [default: /proc]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l color -d 'Color the output: auto, always or never [default: auto]' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Also in a file or pipe'
never\t'Not at all'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l json -d 'Write JSON, in the same order'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l wide -d 'Write all columns, one line per row'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l fabric.registers -d 'Read registers of NVIDIA devices (on by default)'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -l no-fabric.registers -d 'Do not read registers of NVIDIA devices'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand ports" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l path.dev -d 'Directory of the device files [default: /dev]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l config.file -d 'Config file of the "serve" command' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.name -d 'Value of the "fabric" label [default: default]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.hca -d 'HCA to use [default: first usable]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.port -d 'Port to use [default: first that is up]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.discovery-interval -d 'Discovery interval [default: 5m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.forget-after -d 'How long missing nodes are reported as down [default: 7d]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.node-name-map -d 'File with names for nodes' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.host-regex -d 'The host in the name of an HCA' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.totals-from -d 'Another exporter of the same fabric' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.totals-password-file -d 'File with the password for the other exporter' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.totals-ca-file -d 'CA certificates for the other exporter (PEM) [default: those of the system]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.totals-cert-file -d 'Client certificate for the other exporter (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.totals-key-file -d 'Private key of that certificate (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.m-key-file -d 'File with the M_Key of the fabric' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.vs-key-file -d 'File with the VSKeys of devices' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.pkey -d 'P_Key for performance management' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.details -d 'Read error details in each sweep [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.details-interval -d 'How often to read error details [default: 2m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.fec -d 'Read FEC counters [default: true]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.physical-interval -d 'How often to read bit error ratios and errors by lane [default: 1m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.lanes -d 'Export errors by lane, the FEC histogram and details of lasers [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.module-interval -d 'How often to read transceivers and cables [default: 10m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.environment-interval -d 'How often to read uptime and temperature of devices [default: 1m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.clear-saturated -d 'Clear nearly saturated counters [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.smp-window -d 'Window of subnet management MADs [default: 8]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.gmp-window -d 'Window of performance management MADs [default: 128]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.smp-lid-window -d 'Subnet management MADs in flight per LID [default: 2]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.gmp-lid-window -d 'Performance management MADs in flight per LID [default: 4]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.timeout -d 'Response timeout of a MAD [default: 500ms]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.retries -d 'Retries after a timeout [default: 2]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.capture -d 'Record all MADs in this file' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.capture-limit -d 'Size limit of the capture in MiB [default: 100]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l host.device-include -d 'Read only matching devices' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l host.device-exclude -d 'Do not read matching devices' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l host.error-backoff -d 'Retry interval for unreadable files [default: 5m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l host.events -d 'Receive device and kernel events [default: true]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l host.ethtool -d 'Read Ethernet driver statistics [default: true]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l host.modules -d 'Read cables and modules of Ethernet ports [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l host.cm-counters -d 'Read connection manager counters [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l health.maintenance-file -d 'File with planned maintenance' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l health.drained-hosts-file -d 'File with drained hosts' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l health.ber-confidence -d 'Certainty that a bit error ratio is above its limit [default: high]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l health.flap-days -d 'Days with flaps until a link is degraded [default: 3]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l health.flap-window -d 'Time in which these days count [default: 14d]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l history.file -d 'Record each sweep in this file' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l history.size -d 'Size limit of that file [default: 1GiB]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l history.traffic-retention -d 'Retention of traffic per sweep [default: 24h]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l history.retention -d 'Retention of everything else [default: 30d]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l web.listen-address -d 'Listen address [default: :10315]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l web.telemetry-path -d 'Path of the metrics [default: /metrics]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l web.profile -d 'Metrics of a scrape without parameters [default: full]' -r -f -a "full\t'All groups'
lean\t'What most alerts need: verdicts, names, states, bytes and wait ratios'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l web.allowed-hosts -d 'Host names of requests [default: all]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l web.external-url -d 'URL under which users reach the exporter' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l web.grafana-url -d 'URL of a Grafana that has the dashboards' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l web.config.file -d 'Web config file: TLS, users, headers' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l web.systemd-socket -d 'Use systemd socket activation [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l log.format -d 'Format of log lines [default: logfmt]' -r -f -a "logfmt\t'`key=value` pairs'
json\t'One JSON object per line'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l process.confine -d 'Sandbox the process after start-up [default: true]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l process.user -d 'User that "serve" becomes when root starts it [default: fabric-exporter, else nobody]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l process.allow-root -d 'Stay root when root starts "serve" [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l path.sysfs -d 'Mount point of sysfs [default: /sys]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l path.procfs -d 'Mount point of procfs [default: /proc]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.interval -d 'Sweep interval [default: 15s]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l host.interval -d 'Interval of host reads [default: 15s]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l log.level -d 'Minimum log level [default: info]' -r -f -a "error\t''
warn\t''
info\t''
debug\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l color -d 'Color the output: auto, always or never [default: auto]' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Also in a file or pipe'
never\t'Not at all'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l json -d 'Write JSON'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l offline -d 'Send no MADs, not even to the subnet manager'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.registers -d 'Read registers of NVIDIA devices (on by default)'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l no-fabric.registers -d 'Do not read registers of NVIDIA devices'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l collector.fabric -d 'Sweep the fabric (on by default)'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l no-collector.fabric -d 'Do not sweep the fabric'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l collector.host -d 'Read this host\'s RDMA devices (on by default)'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l no-collector.host -d 'Do not read this host\'s RDMA devices'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and not __fish_seen_subcommand_from incidents events port link cable diff report verdicts export dump" -l file -d 'History file (--history.file of the "serve" command)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and not __fish_seen_subcommand_from incidents events port link cable diff report verdicts export dump" -l url -l source -d 'Address of a running exporter that records a history' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and not __fish_seen_subcommand_from incidents events port link cable diff report verdicts export dump" -l source.ca-file -d 'CA certificates for https:// (PEM) [default: those of the system]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and not __fish_seen_subcommand_from incidents events port link cable diff report verdicts export dump" -l source.cert-file -d 'Client certificate (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and not __fish_seen_subcommand_from incidents events port link cable diff report verdicts export dump" -l source.key-file -d 'Private key of the client certificate (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and not __fish_seen_subcommand_from incidents events port link cable diff report verdicts export dump" -l source.password-file -d 'File with the password for HTTP basic authentication' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and not __fish_seen_subcommand_from incidents events port link cable diff report verdicts export dump" -l from -d 'Dumps of other tools: files or directories' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and not __fish_seen_subcommand_from incidents events port link cable diff report verdicts export dump" -l between -d 'Time between the dumps, if the files do not contain it' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and not __fish_seen_subcommand_from incidents events port link cable diff report verdicts export dump" -l color -d 'Color the output: auto, always or never [default: auto]' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Also in a file or pipe'
never\t'Not at all'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and not __fish_seen_subcommand_from incidents events port link cable diff report verdicts export dump" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and not __fish_seen_subcommand_from incidents events port link cable diff report verdicts export dump" -f -a "incidents" -d 'List incidents, oldest first: events grouped by their cause'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and not __fish_seen_subcommand_from incidents events port link cable diff report verdicts export dump" -f -a "events" -d 'List events, oldest first'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and not __fish_seen_subcommand_from incidents events port link cable diff report verdicts export dump" -f -a "port" -d 'Show the events and counters of a port'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and not __fish_seen_subcommand_from incidents events port link cable diff report verdicts export dump" -f -a "link" -d 'Show the events of a link and the counters of both ends'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and not __fish_seen_subcommand_from incidents events port link cable diff report verdicts export dump" -f -a "cable" -d 'Show where a cable or module was, by its serial number, and what happened there'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and not __fish_seen_subcommand_from incidents events port link cable diff report verdicts export dump" -f -a "diff" -d 'List the links that changed or counted errors between two times, worst first'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and not __fish_seen_subcommand_from incidents events port link cable diff report verdicts export dump" -f -a "report" -d 'Write an incident report: events, suspect links with evidence and plots, periods without data'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and not __fish_seen_subcommand_from incidents events port link cable diff report verdicts export dump" -f -a "verdicts" -d 'Count how often the repair suggested with a verdict was right'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and not __fish_seen_subcommand_from incidents events port link cable diff report verdicts export dump" -f -a "export" -d 'Export counters or events (CSV, JSON lines), or totals (OpenMetrics)'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and not __fish_seen_subcommand_from incidents events port link cable diff report verdicts export dump" -f -a "dump" -d 'Copy a period to a new history file'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from incidents" -l severity -d 'List only incidents of at least this severity: info, warning or critical' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from incidents" -l kind -d 'List only incidents of this kind' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from incidents" -l since -d 'Start of the period [default: 24h before --until]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from incidents" -l until -d 'End of the period [default: the end of the data]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from incidents" -l at -d 'Period from 10 minutes before to 10 minutes after this time' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from incidents" -l file -d 'History file (--history.file of the "serve" command)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from incidents" -l url -l source -d 'Address of a running exporter that records a history' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from incidents" -l source.ca-file -d 'CA certificates for https:// (PEM) [default: those of the system]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from incidents" -l source.cert-file -d 'Client certificate (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from incidents" -l source.key-file -d 'Private key of the client certificate (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from incidents" -l source.password-file -d 'File with the password for HTTP basic authentication' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from incidents" -l from -d 'Dumps of other tools: files or directories' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from incidents" -l between -d 'Time between the dumps, if the files do not contain it' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from incidents" -l color -d 'Color the output: auto, always or never [default: auto]' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Also in a file or pipe'
never\t'Not at all'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from incidents" -l events -d 'Also list the events of each incident, of each kind the first 10'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from incidents" -l json -d 'Write JSON'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from incidents" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from events" -l node -d 'List only events of this node' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from events" -l link -d 'List only events of this link' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from events" -l kind -d 'List only events of this kind' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from events" -l since -d 'Start of the period [default: 24h before --until]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from events" -l until -d 'End of the period [default: the end of the data]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from events" -l at -d 'Period from 10 minutes before to 10 minutes after this time' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from events" -l file -d 'History file (--history.file of the "serve" command)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from events" -l url -l source -d 'Address of a running exporter that records a history' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from events" -l source.ca-file -d 'CA certificates for https:// (PEM) [default: those of the system]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from events" -l source.cert-file -d 'Client certificate (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from events" -l source.key-file -d 'Private key of the client certificate (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from events" -l source.password-file -d 'File with the password for HTTP basic authentication' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from events" -l from -d 'Dumps of other tools: files or directories' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from events" -l between -d 'Time between the dumps, if the files do not contain it' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from events" -l color -d 'Color the output: auto, always or never [default: auto]' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Also in a file or pipe'
never\t'Not at all'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from events" -l json -d 'Write JSON'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from events" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from port" -l since -d 'Start of the period [default: 24h before --until]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from port" -l until -d 'End of the period [default: the end of the data]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from port" -l at -d 'Period from 10 minutes before to 10 minutes after this time' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from port" -l file -d 'History file (--history.file of the "serve" command)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from port" -l url -l source -d 'Address of a running exporter that records a history' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from port" -l source.ca-file -d 'CA certificates for https:// (PEM) [default: those of the system]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from port" -l source.cert-file -d 'Client certificate (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from port" -l source.key-file -d 'Private key of the client certificate (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from port" -l source.password-file -d 'File with the password for HTTP basic authentication' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from port" -l from -d 'Dumps of other tools: files or directories' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from port" -l between -d 'Time between the dumps, if the files do not contain it' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from port" -l color -d 'Color the output: auto, always or never [default: auto]' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Also in a file or pipe'
never\t'Not at all'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from port" -l readings -d 'Also list each reading in which error counters increased'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from port" -l json -d 'Write JSON'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from port" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from link" -l since -d 'Start of the period [default: 24h before --until]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from link" -l until -d 'End of the period [default: the end of the data]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from link" -l at -d 'Period from 10 minutes before to 10 minutes after this time' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from link" -l file -d 'History file (--history.file of the "serve" command)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from link" -l url -l source -d 'Address of a running exporter that records a history' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from link" -l source.ca-file -d 'CA certificates for https:// (PEM) [default: those of the system]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from link" -l source.cert-file -d 'Client certificate (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from link" -l source.key-file -d 'Private key of the client certificate (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from link" -l source.password-file -d 'File with the password for HTTP basic authentication' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from link" -l from -d 'Dumps of other tools: files or directories' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from link" -l between -d 'Time between the dumps, if the files do not contain it' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from link" -l color -d 'Color the output: auto, always or never [default: auto]' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Also in a file or pipe'
never\t'Not at all'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from link" -l readings -d 'Also list each reading in which error counters increased'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from link" -l json -d 'Write JSON'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from link" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from cable" -l file -d 'History file (--history.file of the "serve" command)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from cable" -l url -l source -d 'Address of a running exporter that records a history' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from cable" -l source.ca-file -d 'CA certificates for https:// (PEM) [default: those of the system]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from cable" -l source.cert-file -d 'Client certificate (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from cable" -l source.key-file -d 'Private key of the client certificate (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from cable" -l source.password-file -d 'File with the password for HTTP basic authentication' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from cable" -l from -d 'Dumps of other tools: files or directories' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from cable" -l between -d 'Time between the dumps, if the files do not contain it' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from cable" -l color -d 'Color the output: auto, always or never [default: auto]' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Also in a file or pipe'
never\t'Not at all'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from cable" -l json -d 'Write JSON'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from cable" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from diff" -l limit -d 'Maximum number of links' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from diff" -l file -d 'History file (--history.file of the "serve" command)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from diff" -l url -l source -d 'Address of a running exporter that records a history' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from diff" -l source.ca-file -d 'CA certificates for https:// (PEM) [default: those of the system]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from diff" -l source.cert-file -d 'Client certificate (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from diff" -l source.key-file -d 'Private key of the client certificate (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from diff" -l source.password-file -d 'File with the password for HTTP basic authentication' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from diff" -l from -d 'Dumps of other tools: files or directories' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from diff" -l between -d 'Time between the dumps, if the files do not contain it' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from diff" -l color -d 'Color the output: auto, always or never [default: auto]' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Also in a file or pipe'
never\t'Not at all'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from diff" -l json -d 'Write JSON'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from diff" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from report" -l format -d 'Output format' -r -f -a "html\t'A self-contained page'
markdown\t'For tickets'
json\t'For programs'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from report" -s o -l output -d 'Output file [default: standard output]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from report" -l since -d 'Start of the period [default: 24h before --until]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from report" -l until -d 'End of the period [default: the end of the data]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from report" -l at -d 'Period from 10 minutes before to 10 minutes after this time' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from report" -l file -d 'History file (--history.file of the "serve" command)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from report" -l url -l source -d 'Address of a running exporter that records a history' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from report" -l source.ca-file -d 'CA certificates for https:// (PEM) [default: those of the system]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from report" -l source.cert-file -d 'Client certificate (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from report" -l source.key-file -d 'Private key of the client certificate (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from report" -l source.password-file -d 'File with the password for HTTP basic authentication' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from report" -l from -d 'Dumps of other tools: files or directories' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from report" -l between -d 'Time between the dumps, if the files do not contain it' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from report" -l color -d 'Color the output: auto, always or never [default: auto]' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Also in a file or pipe'
never\t'Not at all'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from report" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from verdicts" -l until -d 'End of the period [default: the end of the data]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from verdicts" -l at -d 'Period from 10 minutes before to 10 minutes after this time' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from verdicts" -l since -d 'Start of the period [default: the start of the data]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from verdicts" -l file -d 'History file (--history.file of the "serve" command)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from verdicts" -l url -l source -d 'Address of a running exporter that records a history' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from verdicts" -l source.ca-file -d 'CA certificates for https:// (PEM) [default: those of the system]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from verdicts" -l source.cert-file -d 'Client certificate (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from verdicts" -l source.key-file -d 'Private key of the client certificate (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from verdicts" -l source.password-file -d 'File with the password for HTTP basic authentication' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from verdicts" -l from -d 'Dumps of other tools: files or directories' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from verdicts" -l between -d 'Time between the dumps, if the files do not contain it' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from verdicts" -l color -d 'Color the output: auto, always or never [default: auto]' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Also in a file or pipe'
never\t'Not at all'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from verdicts" -l json -d 'Write JSON'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from verdicts" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from export" -l what -d 'What to export [default: counters]' -r -f -a "counters\t'Increases of counters, one row per reading'
events\t'Events, one row each'
incidents\t'Incidents, one row each: events grouped by their cause'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from export" -l format -d 'Output format [default: by the extension of --output, or csv]' -r -f -a "csv\t'Comma-separated values with a header'
jsonl\t'One JSON object per line'
openmetrics\t'Counter totals and states with timestamps, as Prometheus would have scraped them'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from export" -l node -d 'Export only this node' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from export" -l link -d 'Export only this link' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from export" -l step -d 'Interval of samples [default: one per sweep]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from export" -s o -l output -d 'Output file [default: standard output]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from export" -l since -d 'Start of the period [default: 24h before --until]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from export" -l until -d 'End of the period [default: the end of the data]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from export" -l at -d 'Period from 10 minutes before to 10 minutes after this time' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from export" -l file -d 'History file (--history.file of the "serve" command)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from export" -l url -l source -d 'Address of a running exporter that records a history' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from export" -l source.ca-file -d 'CA certificates for https:// (PEM) [default: those of the system]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from export" -l source.cert-file -d 'Client certificate (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from export" -l source.key-file -d 'Private key of the client certificate (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from export" -l source.password-file -d 'File with the password for HTTP basic authentication' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from export" -l from -d 'Dumps of other tools: files or directories' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from export" -l between -d 'Time between the dumps, if the files do not contain it' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from export" -l color -d 'Color the output: auto, always or never [default: auto]' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Also in a file or pipe'
never\t'Not at all'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from export" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from dump" -s o -l output -d 'File to create' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from dump" -l since -d 'Start of the period [default: 24h before --until]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from dump" -l until -d 'End of the period [default: the end of the data]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from dump" -l at -d 'Period from 10 minutes before to 10 minutes after this time' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from dump" -l file -d 'History file (--history.file of the "serve" command)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from dump" -l url -l source -d 'Address of a running exporter that records a history' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from dump" -l source.ca-file -d 'CA certificates for https:// (PEM) [default: those of the system]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from dump" -l source.cert-file -d 'Client certificate (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from dump" -l source.key-file -d 'Private key of the client certificate (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from dump" -l source.password-file -d 'File with the password for HTTP basic authentication' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from dump" -l from -d 'Dumps of other tools: files or directories' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from dump" -l between -d 'Time between the dumps, if the files do not contain it' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from dump" -l color -d 'Color the output: auto, always or never [default: auto]' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Also in a file or pipe'
never\t'Not at all'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from dump" -l force -d 'Overwrite an existing file'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from dump" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand check" -l config.file -d 'Config file of the "serve" command' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand check" -l web.config.file -d 'Web config file: TLS, users, headers' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand check" -l color -d 'Color the output: auto, always or never [default: auto]' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Also in a file or pipe'
never\t'Not at all'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l scenario -d 'YAML file with a fabric and a timeline of faults' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l topology -d 'Use the fabric of a dump or of an ibsim file' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l hosts -d 'Number of hosts [default: as in the scenario]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l speedup -d 'Play the events of the scenario X times as fast' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l clock -d 'Let simulated time run X times as fast' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.name -d 'Value of the "fabric" label [default: default]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.discovery-interval -d 'Discovery interval [default: 5m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.forget-after -d 'How long missing nodes are reported as down [default: 7d]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.node-name-map -d 'File with names for nodes' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.host-regex -d 'The host in the name of an HCA' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.totals-from -d 'Another exporter of the same fabric' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.totals-password-file -d 'File with the password for the other exporter' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.totals-ca-file -d 'CA certificates for the other exporter (PEM) [default: those of the system]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.totals-cert-file -d 'Client certificate for the other exporter (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.totals-key-file -d 'Private key of that certificate (PEM)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.m-key-file -d 'File with the M_Key of the fabric' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.vs-key-file -d 'File with the VSKeys of devices' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.pkey -d 'P_Key for performance management' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.details -d 'Read error details in each sweep [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.details-interval -d 'How often to read error details [default: 2m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.fec -d 'Read FEC counters [default: true]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.physical-interval -d 'How often to read bit error ratios and errors by lane [default: 1m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.lanes -d 'Export errors by lane, the FEC histogram and details of lasers [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.module-interval -d 'How often to read transceivers and cables [default: 10m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.environment-interval -d 'How often to read uptime and temperature of devices [default: 1m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.clear-saturated -d 'Clear nearly saturated counters [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.smp-window -d 'Window of subnet management MADs [default: 8]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.gmp-window -d 'Window of performance management MADs [default: 128]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.smp-lid-window -d 'Subnet management MADs in flight per LID [default: 2]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.gmp-lid-window -d 'Performance management MADs in flight per LID [default: 4]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.timeout -d 'Response timeout of a MAD [default: 500ms]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.retries -d 'Retries after a timeout [default: 2]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.capture -d 'Record all MADs in this file' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.capture-limit -d 'Size limit of the capture in MiB [default: 100]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l health.maintenance-file -d 'File with planned maintenance' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l health.drained-hosts-file -d 'File with drained hosts' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l health.ber-confidence -d 'Certainty that a bit error ratio is above its limit [default: high]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l health.flap-days -d 'Days with flaps until a link is degraded [default: 3]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l health.flap-window -d 'Time in which these days count [default: 14d]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l history.traffic-retention -d 'Retention of traffic per sweep [default: 24h]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l history.retention -d 'Retention of everything else [default: 30d]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l web.telemetry-path -d 'Path of the metrics [default: /metrics]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l web.profile -d 'Metrics of a scrape without parameters [default: full]' -r -f -a "full\t'All groups'
lean\t'What most alerts need: verdicts, names, states, bytes and wait ratios'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l web.allowed-hosts -d 'Host names of requests [default: all]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l web.external-url -d 'URL under which users reach the exporter' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l web.grafana-url -d 'URL of a Grafana that has the dashboards' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l web.config.file -d 'Web config file: TLS, users, headers' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l web.systemd-socket -d 'Use systemd socket activation [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l log.format -d 'Format of log lines [default: logfmt]' -r -f -a "logfmt\t'`key=value` pairs'
json\t'One JSON object per line'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l process.confine -d 'Sandbox the process after start-up [default: true]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l process.user -d 'User that "serve" becomes when root starts it [default: fabric-exporter, else nobody]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l process.allow-root -d 'Stay root when root starts "serve" [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l web.listen-address -d 'Listen address [default: 127.0.0.1:10315]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l log.level -d 'Minimum log level [default: warn]' -r -f -a "error\t''
warn\t''
info\t''
debug\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.interval -d 'Sweep interval [default: 5s]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l history.file -d 'Record each sweep in this file [default: a temporary file]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l history.size -d 'Size limit of that file [default: 1GiB; 64MiB if temporary]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.hca -d 'HCA to use [default: first usable]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.port -d 'Port to use [default: first that is up]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l color -d 'Color the output: auto, always or never [default: auto]' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Also in a file or pipe'
never\t'Not at all'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l open -d 'Open the pages in a browser'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.registers -d 'Read registers of NVIDIA devices (on by default)'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l no-fabric.registers -d 'Do not read registers of NVIDIA devices'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l no-history -d 'Do not record a history'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l no-past -d 'Do not record a past before the start'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand completions" -l color -d 'Color the output: auto, always or never [default: auto]' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Also in a file or pipe'
never\t'Not at all'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand completions" -s h -l help -d 'Print help (see more with \'--help\')'
