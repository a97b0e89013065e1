# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_fabric_exporter_global_optspecs
    string join \n h/help V/version
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

complete -c fabric-exporter -n "__fish_fabric_exporter_needs_command" -s h -l help -d 'Print help'
complete -c fabric-exporter -n "__fish_fabric_exporter_needs_command" -s V -l version -d 'Print version'
complete -c fabric-exporter -n "__fish_fabric_exporter_needs_command" -f -a "serve" -d 'Poll the fabric and serve its metrics over HTTP'
complete -c fabric-exporter -n "__fish_fabric_exporter_needs_command" -f -a "links" -d 'List the fabric\'s cables, the worst first: sweep once, or ask an exporter that is running'
complete -c fabric-exporter -n "__fish_fabric_exporter_needs_command" -f -a "doctor" -d 'Tell what is missing on this host for the exporter to work, and what mends it'
complete -c fabric-exporter -n "__fish_fabric_exporter_needs_command" -f -a "history" -d 'Tell what an exporter has recorded: what happened, and when'
complete -c fabric-exporter -n "__fish_fabric_exporter_needs_command" -f -a "check" -d 'Look whether the config file and the web config file are as they have to be'
complete -c fabric-exporter -n "__fish_fabric_exporter_needs_command" -f -a "demo" -d 'Serve a simulated fabric with troubles in it; no InfiniBand needed'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l config.file -d 'YAML file with the same settings; a flag wins over its key' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l web.listen-address -d 'Address to listen on, such as :10315 or 127.0.0.1:10315; may be repeated [default: :10315]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l web.telemetry-path -d 'Path of the metrics [default: /metrics]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l web.config.file -d 'YAML file with TLS, logins and headers, in the form of the Prometheus exporter toolkit; read again when it changes [default: none, and everybody is answered without TLS]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l web.systemd-socket -d 'Listen on the sockets that systemd hands over, and on no address [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l log.level -d 'Log this and what is graver [default: info]' -r -f -a "error\t''
warn\t''
info\t''
debug\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l log.format -d 'How to write a log line [default: logfmt]' -r -f -a "logfmt\t'`key=value` pairs'
json\t'A JSON object a line'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l process.confine -d 'Give up, once all is open, what is not needed: capabilities, other files, connections [default: true]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l path.sysfs -d 'Where sysfs is mounted [default: /sys]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l path.procfs -d 'Where procfs is mounted [default: /proc]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l host.interval -d 'From one look at the devices to the next [default: 15s]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l host.device-include -d 'Read only devices whose whole name matches this regular expression' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l host.device-exclude -d 'Do not even open devices whose whole name matches this regular expression' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l host.error-backoff -d 'How long a file that gave no value when it was read is left alone [default: 5m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l host.events -d 'Hear what devices tell of themselves, by libibverbs and the kernel\'s uevents [default: true]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l host.ethtool -d 'Read what Ethernet drivers count on the wire, as `ethtool -S` does [default: true]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l host.cm-counters -d 'Read the counters of the kernel\'s connection manager, 44 for each port [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l health.maintenance-file -d 'File that lists what is worked on, so that it may go down: read again when it changes' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l history.file -d 'File to record each sweep in [default: none, and nothing is recorded]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l history.size -d 'Size that the file is kept below [default: 1GiB]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l history.traffic-retention -d 'How long each sweep\'s traffic is kept [default: 24h]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l history.retention -d 'How long events, and each sweep\'s errors and waits, are kept [default: 30d]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.name -d 'Value of the label `fabric` [default: default]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.hca -d 'HCA to ask from [default: the first with an InfiniBand port that is up]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.port -d 'Port of the HCA to ask from [default: the first that is up]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.interval -d 'From one sweep of all counters to the next [default: 15s]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.discovery-interval -d 'From one discovery to the next while nothing moves [default: 5m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.forget-after -d 'How long a node or a device of this host that disappeared is reported as down [default: 7days]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.node-name-map -d 'File with names for nodes, in the form of infiniband-diags\' node-name-map' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.m-key-file -d 'File with the M_Key of the fabric\'s ports, or OpenSM\'s guid2mkey; read again at each discovery [default: none, and subnet management is asked without a key]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.pkey -d 'Partition to ask performance management in, which this port is a member of, such as 0x8001 [default: the first P_Key of the port\'s table]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.details -d 'Read PortRcvErrorDetails and PortXmitDiscardDetails in each sweep, of all devices that have them: two more MADs per port [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.details-interval -d 'Interval at which PortRcvErrorDetails and PortXmitDiscardDetails are read without --fabric.details, from devices that announce them in PortSamplesControl; 0 for never [default: 2m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.fec -d 'Read what error correction had to mend: one more MAD a port of devices that tell it [default: true]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.clear-saturated -d 'Clear counters of fewer than 64 bits that are over three quarters full; other tools that read the same ports see them fall to zero [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.smp-window -d 'Subnet management MADs in flight in all [default: 8]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.gmp-window -d 'Performance management MADs in flight in all [default: 128]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.smp-lid-window -d 'Subnet management MADs in flight to any one LID [default: 2]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.gmp-lid-window -d 'Performance management MADs in flight to any one LID [default: 4]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.timeout -d 'How long to wait for an answer [default: 500ms]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.retries -d 'How often to ask again what was not answered [default: 2]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.capture -d 'Write each MAD, out and in, to this file, which Wireshark reads' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l fabric.capture-limit -d 'Size in MiB that the capture does not pass [default: 100]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l collector.fabric -d 'Ask the whole fabric by MADs (the default)'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l no-collector.fabric -d 'Leave the fabric alone'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l collector.host -d 'Read this host\'s own RDMA devices from sysfs (the default)'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -l no-collector.host -d 'Leave this host\'s own devices alone'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric -d 'Only links of the fabric with this name' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l url -d 'Ask an exporter that is running, such as http://127.0.0.1:10315, instead of the fabric' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l source.ca-file -d 'PEM file with the CAs that are trusted where an https:// address is asked [default: the system\'s]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l source.cert-file -d 'PEM file with the certificate that is shown to who is asked' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l source.key-file -d 'PEM file with the key of that certificate' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l source.password-file -d 'File with the password of the user that stands in the address, as in https://USER@HOST:10315' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l for -d 'Sweep on for so long: what happens meanwhile can be told, and one sweep tells no rates' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l config.file -d 'YAML file with the settings of `serve`; a flag wins over its key' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l path.sysfs -d 'Where sysfs is mounted [default: /sys]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l path.procfs -d 'Where procfs is mounted [default: /proc]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.name -d 'Value of the label `fabric` [default: default]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.hca -d 'HCA to ask from [default: the first with an InfiniBand port that is up]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.port -d 'Port of the HCA to ask from [default: the first that is up]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.interval -d 'From one sweep of all counters to the next [default: 15s]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.discovery-interval -d 'From one discovery to the next while nothing moves [default: 5m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.forget-after -d 'How long a node or a device of this host that disappeared is reported as down [default: 7days]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.node-name-map -d 'File with names for nodes, in the form of infiniband-diags\' node-name-map' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.m-key-file -d 'File with the M_Key of the fabric\'s ports, or OpenSM\'s guid2mkey; read again at each discovery [default: none, and subnet management is asked without a key]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.pkey -d 'Partition to ask performance management in, which this port is a member of, such as 0x8001 [default: the first P_Key of the port\'s table]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.details -d 'Read PortRcvErrorDetails and PortXmitDiscardDetails in each sweep, of all devices that have them: two more MADs per port [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.details-interval -d 'Interval at which PortRcvErrorDetails and PortXmitDiscardDetails are read without --fabric.details, from devices that announce them in PortSamplesControl; 0 for never [default: 2m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.fec -d 'Read what error correction had to mend: one more MAD a port of devices that tell it [default: true]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.clear-saturated -d 'Clear counters of fewer than 64 bits that are over three quarters full; other tools that read the same ports see them fall to zero [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.smp-window -d 'Subnet management MADs in flight in all [default: 8]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.gmp-window -d 'Performance management MADs in flight in all [default: 128]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.smp-lid-window -d 'Subnet management MADs in flight to any one LID [default: 2]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.gmp-lid-window -d 'Performance management MADs in flight to any one LID [default: 4]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.timeout -d 'How long to wait for an answer [default: 500ms]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.retries -d 'How often to ask again what was not answered [default: 2]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.capture -d 'Write each MAD, out and in, to this file, which Wireshark reads' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l fabric.capture-limit -d 'Size in MiB that the capture does not pass [default: 100]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l suspect -d 'Only links that are bad, to be watched, or unknown and with errors counted'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -l json -d 'Write JSON, as an exporter\'s /api/v1/links does'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand links" -s h -l help -d 'Print help'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l path.dev -d 'Where the device files are [default: /dev]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l config.file -d 'YAML file with the settings of `serve`; a flag wins over its key' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l web.listen-address -d 'Address to listen on, such as :10315 or 127.0.0.1:10315; may be repeated [default: :10315]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l web.telemetry-path -d 'Path of the metrics [default: /metrics]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l web.config.file -d 'YAML file with TLS, logins and headers, in the form of the Prometheus exporter toolkit; read again when it changes [default: none, and everybody is answered without TLS]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l web.systemd-socket -d 'Listen on the sockets that systemd hands over, and on no address [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l log.level -d 'Log this and what is graver [default: info]' -r -f -a "error\t''
warn\t''
info\t''
debug\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l log.format -d 'How to write a log line [default: logfmt]' -r -f -a "logfmt\t'`key=value` pairs'
json\t'A JSON object a line'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l process.confine -d 'Give up, once all is open, what is not needed: capabilities, other files, connections [default: true]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l path.sysfs -d 'Where sysfs is mounted [default: /sys]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l path.procfs -d 'Where procfs is mounted [default: /proc]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l host.interval -d 'From one look at the devices to the next [default: 15s]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l host.device-include -d 'Read only devices whose whole name matches this regular expression' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l host.device-exclude -d 'Do not even open devices whose whole name matches this regular expression' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l host.error-backoff -d 'How long a file that gave no value when it was read is left alone [default: 5m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l host.events -d 'Hear what devices tell of themselves, by libibverbs and the kernel\'s uevents [default: true]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l host.ethtool -d 'Read what Ethernet drivers count on the wire, as `ethtool -S` does [default: true]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l host.cm-counters -d 'Read the counters of the kernel\'s connection manager, 44 for each port [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l health.maintenance-file -d 'File that lists what is worked on, so that it may go down: read again when it changes' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l history.file -d 'File to record each sweep in [default: none, and nothing is recorded]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l history.size -d 'Size that the file is kept below [default: 1GiB]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l history.traffic-retention -d 'How long each sweep\'s traffic is kept [default: 24h]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l history.retention -d 'How long events, and each sweep\'s errors and waits, are kept [default: 30d]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.name -d 'Value of the label `fabric` [default: default]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.hca -d 'HCA to ask from [default: the first with an InfiniBand port that is up]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.port -d 'Port of the HCA to ask from [default: the first that is up]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.interval -d 'From one sweep of all counters to the next [default: 15s]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.discovery-interval -d 'From one discovery to the next while nothing moves [default: 5m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.forget-after -d 'How long a node or a device of this host that disappeared is reported as down [default: 7days]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.node-name-map -d 'File with names for nodes, in the form of infiniband-diags\' node-name-map' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.m-key-file -d 'File with the M_Key of the fabric\'s ports, or OpenSM\'s guid2mkey; read again at each discovery [default: none, and subnet management is asked without a key]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.pkey -d 'Partition to ask performance management in, which this port is a member of, such as 0x8001 [default: the first P_Key of the port\'s table]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.details -d 'Read PortRcvErrorDetails and PortXmitDiscardDetails in each sweep, of all devices that have them: two more MADs per port [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.details-interval -d 'Interval at which PortRcvErrorDetails and PortXmitDiscardDetails are read without --fabric.details, from devices that announce them in PortSamplesControl; 0 for never [default: 2m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.fec -d 'Read what error correction had to mend: one more MAD a port of devices that tell it [default: true]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.clear-saturated -d 'Clear counters of fewer than 64 bits that are over three quarters full; other tools that read the same ports see them fall to zero [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.smp-window -d 'Subnet management MADs in flight in all [default: 8]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.gmp-window -d 'Performance management MADs in flight in all [default: 128]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.smp-lid-window -d 'Subnet management MADs in flight to any one LID [default: 2]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.gmp-lid-window -d 'Performance management MADs in flight to any one LID [default: 4]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.timeout -d 'How long to wait for an answer [default: 500ms]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.retries -d 'How often to ask again what was not answered [default: 2]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.capture -d 'Write each MAD, out and in, to this file, which Wireshark reads' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l fabric.capture-limit -d 'Size in MiB that the capture does not pass [default: 100]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l json -d 'Write JSON'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l offline -d 'Ask nothing on the wire, not even the subnet manager'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l collector.fabric -d 'Ask the whole fabric by MADs (the default)'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l no-collector.fabric -d 'Leave the fabric alone'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l collector.host -d 'Read this host\'s own RDMA devices from sysfs (the default)'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -l no-collector.host -d 'Leave this host\'s own devices alone'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and not __fish_seen_subcommand_from events port link diff report export dump" -l file -d 'File that an exporter records in, or has recorded in (--history.file)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and not __fish_seen_subcommand_from events port link diff report export dump" -l url -l source -d 'Address of a running exporter that records, such as http://127.0.0.1:10315' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and not __fish_seen_subcommand_from events port link diff report export dump" -l source.ca-file -d 'PEM file with the CAs that are trusted where an https:// address is asked [default: the system\'s]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and not __fish_seen_subcommand_from events port link diff report export dump" -l source.cert-file -d 'PEM file with the certificate that is shown to who is asked' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and not __fish_seen_subcommand_from events port link diff report export dump" -l source.key-file -d 'PEM file with the key of that certificate' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and not __fish_seen_subcommand_from events port link diff report export dump" -l source.password-file -d 'File with the password of the user that stands in the address, as in https://USER@HOST:10315' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and not __fish_seen_subcommand_from events port link diff report export dump" -s h -l help -d 'Print help'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and not __fish_seen_subcommand_from events port link diff report export dump" -f -a "events" -d 'What happened, the earliest first'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and not __fish_seen_subcommand_from events port link diff report export dump" -f -a "port" -d 'What a port went through: what happened, and the course of its counters'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and not __fish_seen_subcommand_from events port link diff report export dump" -f -a "link" -d 'What a cable went through: what happened, and what both of its ends counted'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and not __fish_seen_subcommand_from events port link diff report export dump" -f -a "diff" -d 'What moved on every cable between two moments, the worst first'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and not __fish_seen_subcommand_from events port link diff report export dump" -f -a "report" -d 'One page on a window: what happened, the suspects with evidence and plots, what is not known'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and not __fish_seen_subcommand_from events port link diff report export dump" -f -a "export" -d 'What was recorded, for other programs: readings, events, or totals for a Prometheus'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and not __fish_seen_subcommand_from events port link diff report export dump" -f -a "dump" -d 'A copy of a window in a file of its own, which can be asked anywhere (--file)'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from events" -l since -d 'From then on: 2h (ago), 03:12, "2026-11-21 03:12", or RFC 3339 [default: a day before the end]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from events" -l until -d 'Until then; the same forms [default: all that there is]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from events" -l at -d 'Ten minutes before and after this time' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from events" -l node -d 'Only of this node, with its ports and links: a name or a GUID' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from events" -l link -d 'Only of this link: its id, or NODE[PORT]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from events" -l kind -d 'Only of this kind; may be repeated' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from events" -l file -d 'File that an exporter records in, or has recorded in (--history.file)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from events" -l url -l source -d 'Address of a running exporter that records, such as http://127.0.0.1:10315' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from events" -l source.ca-file -d 'PEM file with the CAs that are trusted where an https:// address is asked [default: the system\'s]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from events" -l source.cert-file -d 'PEM file with the certificate that is shown to who is asked' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from events" -l source.key-file -d 'PEM file with the key of that certificate' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from events" -l source.password-file -d 'File with the password of the user that stands in the address, as in https://USER@HOST:10315' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from events" -l json -d 'Write JSON'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from events" -s h -l help -d 'Print help'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from port" -l since -d 'From then on: 2h (ago), 03:12, "2026-11-21 03:12", or RFC 3339 [default: a day before the end]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from port" -l until -d 'Until then; the same forms [default: all that there is]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from port" -l at -d 'Ten minutes before and after this time' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from port" -l file -d 'File that an exporter records in, or has recorded in (--history.file)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from port" -l url -l source -d 'Address of a running exporter that records, such as http://127.0.0.1:10315' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from port" -l source.ca-file -d 'PEM file with the CAs that are trusted where an https:// address is asked [default: the system\'s]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from port" -l source.cert-file -d 'PEM file with the certificate that is shown to who is asked' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from port" -l source.key-file -d 'PEM file with the key of that certificate' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from port" -l source.password-file -d 'File with the password of the user that stands in the address, as in https://USER@HOST:10315' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from port" -l readings -d 'Tell each reading with errors, too'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from port" -l json -d 'Write JSON'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from port" -s h -l help -d 'Print help'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from link" -l since -d 'From then on: 2h (ago), 03:12, "2026-11-21 03:12", or RFC 3339 [default: a day before the end]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from link" -l until -d 'Until then; the same forms [default: all that there is]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from link" -l at -d 'Ten minutes before and after this time' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from link" -l file -d 'File that an exporter records in, or has recorded in (--history.file)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from link" -l url -l source -d 'Address of a running exporter that records, such as http://127.0.0.1:10315' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from link" -l source.ca-file -d 'PEM file with the CAs that are trusted where an https:// address is asked [default: the system\'s]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from link" -l source.cert-file -d 'PEM file with the certificate that is shown to who is asked' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from link" -l source.key-file -d 'PEM file with the key of that certificate' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from link" -l source.password-file -d 'File with the password of the user that stands in the address, as in https://USER@HOST:10315' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from link" -l readings -d 'Tell each reading with errors, too'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from link" -l json -d 'Write JSON'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from link" -s h -l help -d 'Print help'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from diff" -l limit -d 'Tell so many links, the worst' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from diff" -l file -d 'File that an exporter records in, or has recorded in (--history.file)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from diff" -l url -l source -d 'Address of a running exporter that records, such as http://127.0.0.1:10315' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from diff" -l source.ca-file -d 'PEM file with the CAs that are trusted where an https:// address is asked [default: the system\'s]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from diff" -l source.cert-file -d 'PEM file with the certificate that is shown to who is asked' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from diff" -l source.key-file -d 'PEM file with the key of that certificate' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from diff" -l source.password-file -d 'File with the password of the user that stands in the address, as in https://USER@HOST:10315' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from diff" -l json -d 'Write JSON'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from diff" -s h -l help -d 'Print help'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from report" -l since -d 'From then on: 2h (ago), 03:12, "2026-11-21 03:12", or RFC 3339 [default: a day before the end]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from report" -l until -d 'Until then; the same forms [default: all that there is]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from report" -l at -d 'Ten minutes before and after this time' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from report" -l format -d 'How it is written' -r -f -a "html\t'One page that needs nothing besides'
markdown\t'For a ticket'
json\t'For programs'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from report" -s o -l output -d 'Write it there, in the format of its ending (.html, .md, .json)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from report" -l file -d 'File that an exporter records in, or has recorded in (--history.file)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from report" -l url -l source -d 'Address of a running exporter that records, such as http://127.0.0.1:10315' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from report" -l source.ca-file -d 'PEM file with the CAs that are trusted where an https:// address is asked [default: the system\'s]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from report" -l source.cert-file -d 'PEM file with the certificate that is shown to who is asked' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from report" -l source.key-file -d 'PEM file with the key of that certificate' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from report" -l source.password-file -d 'File with the password of the user that stands in the address, as in https://USER@HOST:10315' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from report" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from export" -l since -d 'From then on: 2h (ago), 03:12, "2026-11-21 03:12", or RFC 3339 [default: a day before the end]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from export" -l until -d 'Until then; the same forms [default: all that there is]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from export" -l at -d 'Ten minutes before and after this time' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from export" -l what -d 'What is exported [default: counters]' -r -f -a "counters\t'What counters grew by, a row a reading'
events\t'What happened, a row an event'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from export" -l format -d 'How it is written [default: by the ending of -o, or csv]' -r -f -a "csv\t'A head and a line a row'
jsonl\t'A JSON object a line'
parquet\t'Apache Parquet'
openmetrics\t'Totals and states with times, as a Prometheus would have scraped them'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from export" -l node -d 'Only of this node, with its ports and links: a name or a GUID; may be repeated' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from export" -l link -d 'Only of this link: its id, or NODE[PORT]; may be repeated' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from export" -l step -d 'Of totals (openmetrics) one sample in each of these [default: each sweep\'s]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from export" -s o -l output -d 'Write it there (.csv, .jsonl, .parquet, .om) and not to standard output' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from export" -l file -d 'File that an exporter records in, or has recorded in (--history.file)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from export" -l url -l source -d 'Address of a running exporter that records, such as http://127.0.0.1:10315' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from export" -l source.ca-file -d 'PEM file with the CAs that are trusted where an https:// address is asked [default: the system\'s]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from export" -l source.cert-file -d 'PEM file with the certificate that is shown to who is asked' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from export" -l source.key-file -d 'PEM file with the key of that certificate' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from export" -l source.password-file -d 'File with the password of the user that stands in the address, as in https://USER@HOST:10315' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from export" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from dump" -l since -d 'From then on: 2h (ago), 03:12, "2026-11-21 03:12", or RFC 3339 [default: a day before the end]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from dump" -l until -d 'Until then; the same forms [default: all that there is]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from dump" -l at -d 'Ten minutes before and after this time' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from dump" -s o -l output -d 'Write it there' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from dump" -l file -d 'File that an exporter records in, or has recorded in (--history.file)' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from dump" -l url -l source -d 'Address of a running exporter that records, such as http://127.0.0.1:10315' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from dump" -l source.ca-file -d 'PEM file with the CAs that are trusted where an https:// address is asked [default: the system\'s]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from dump" -l source.cert-file -d 'PEM file with the certificate that is shown to who is asked' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from dump" -l source.key-file -d 'PEM file with the key of that certificate' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from dump" -l source.password-file -d 'File with the password of the user that stands in the address, as in https://USER@HOST:10315' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from dump" -l force -d 'Write it there also if there is a file of that name'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand history; and __fish_seen_subcommand_from dump" -s h -l help -d 'Print help'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand check" -l config.file -d 'YAML file with the settings of `serve`; files that it names are looked at, too' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand check" -l web.config.file -d 'YAML file with TLS, logins and headers' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand check" -s h -l help -d 'Print help'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l scenario -d 'YAML file with a scenario: a fabric and what happens to it [default: one cable going bad, one link flapping, one congested host; with --topology, nothing but traffic]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l topology -d 'Fabric to use instead of the scenario\'s: a file that ibnetdiscover printed, or ibsim\'s' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l hosts -d 'Number of hosts instead of the scenario\'s' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l speedup -d 'Let the story unfold so many times as fast; rates stay as they are' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l clock -d 'Let the simulated clock run so many times as fast as ours: the story, the counters, the sweeps and what is made of them; times in metrics run ahead with it' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l web.telemetry-path -d 'Path of the metrics [default: /metrics]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l web.config.file -d 'YAML file with TLS, logins and headers, in the form of the Prometheus exporter toolkit; read again when it changes [default: none, and everybody is answered without TLS]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l web.systemd-socket -d 'Listen on the sockets that systemd hands over, and on no address [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l log.format -d 'How to write a log line [default: logfmt]' -r -f -a "logfmt\t'`key=value` pairs'
json\t'A JSON object a line'"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l process.confine -d 'Give up, once all is open, what is not needed: capabilities, other files, connections [default: true]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l history.traffic-retention -d 'How long each sweep\'s traffic is kept [default: 24h]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l history.retention -d 'How long events, and each sweep\'s errors and waits, are kept [default: 30d]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.name -d 'Value of the label `fabric` [default: default]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.discovery-interval -d 'From one discovery to the next while nothing moves [default: 5m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.forget-after -d 'How long a node or a device of this host that disappeared is reported as down [default: 7days]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.node-name-map -d 'File with names for nodes, in the form of infiniband-diags\' node-name-map' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.m-key-file -d 'File with the M_Key of the fabric\'s ports, or OpenSM\'s guid2mkey; read again at each discovery [default: none, and subnet management is asked without a key]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.pkey -d 'Partition to ask performance management in, which this port is a member of, such as 0x8001 [default: the first P_Key of the port\'s table]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.details -d 'Read PortRcvErrorDetails and PortXmitDiscardDetails in each sweep, of all devices that have them: two more MADs per port [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.details-interval -d 'Interval at which PortRcvErrorDetails and PortXmitDiscardDetails are read without --fabric.details, from devices that announce them in PortSamplesControl; 0 for never [default: 2m]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.fec -d 'Read what error correction had to mend: one more MAD a port of devices that tell it [default: true]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.clear-saturated -d 'Clear counters of fewer than 64 bits that are over three quarters full; other tools that read the same ports see them fall to zero [default: false]' -r -f -a "true\t''
false\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.smp-window -d 'Subnet management MADs in flight in all [default: 8]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.gmp-window -d 'Performance management MADs in flight in all [default: 128]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.smp-lid-window -d 'Subnet management MADs in flight to any one LID [default: 2]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.gmp-lid-window -d 'Performance management MADs in flight to any one LID [default: 4]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.timeout -d 'How long to wait for an answer [default: 500ms]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.retries -d 'How often to ask again what was not answered [default: 2]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.capture -d 'Write each MAD, out and in, to this file, which Wireshark reads' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.capture-limit -d 'Size in MiB that the capture does not pass [default: 100]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l web.listen-address -d 'Address to listen on; may be repeated [default: 127.0.0.1:10315]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l log.level -d 'Log this and what is graver [default: warn]' -r -f -a "error\t''
warn\t''
info\t''
debug\t''"
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.interval -d 'From one sweep of all counters to the next [default: 5s]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l history.file -d 'File to record each sweep in [default: a temporary one, which goes with the demo]' -r -F
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l history.size -d 'Size that the file is kept below [default: 1GiB; of a temporary one 64MiB]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.hca -d 'HCA to ask from [default: the first with an InfiniBand port that is up]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l fabric.port -d 'Port of the HCA to ask from [default: the first that is up]' -r
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -l no-history -d 'Record nothing'
complete -c fabric-exporter -n "__fish_fabric_exporter_using_subcommand demo" -s h -l help -d 'Print help (see more with \'--help\')'
