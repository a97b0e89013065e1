_fabric__exporter() {
    local i cur prev opts cmd
    COMPREPLY=()
    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
        cur="$2"
    else
        cur="${COMP_WORDS[COMP_CWORD]}"
    fi
    prev="$3"
    cmd=""
    opts=""

    for i in "${COMP_WORDS[@]:0:COMP_CWORD}"
    do
        case "${cmd},${i}" in
            ",$1")
                cmd="fabric__exporter"
                ;;
            fabric__exporter,check)
                cmd="fabric__exporter__subcmd__check"
                ;;
            fabric__exporter,completions)
                cmd="fabric__exporter__subcmd__completions"
                ;;
            fabric__exporter,demo)
                cmd="fabric__exporter__subcmd__demo"
                ;;
            fabric__exporter,doctor)
                cmd="fabric__exporter__subcmd__doctor"
                ;;
            fabric__exporter,history)
                cmd="fabric__exporter__subcmd__history"
                ;;
            fabric__exporter,links)
                cmd="fabric__exporter__subcmd__links"
                ;;
            fabric__exporter,nodes)
                cmd="fabric__exporter__subcmd__nodes"
                ;;
            fabric__exporter,ports)
                cmd="fabric__exporter__subcmd__ports"
                ;;
            fabric__exporter,serve)
                cmd="fabric__exporter__subcmd__serve"
                ;;
            fabric__exporter,top)
                cmd="fabric__exporter__subcmd__top"
                ;;
            fabric__exporter__subcmd__history,cable)
                cmd="fabric__exporter__subcmd__history__subcmd__cable"
                ;;
            fabric__exporter__subcmd__history,diff)
                cmd="fabric__exporter__subcmd__history__subcmd__diff"
                ;;
            fabric__exporter__subcmd__history,dump)
                cmd="fabric__exporter__subcmd__history__subcmd__dump"
                ;;
            fabric__exporter__subcmd__history,events)
                cmd="fabric__exporter__subcmd__history__subcmd__events"
                ;;
            fabric__exporter__subcmd__history,export)
                cmd="fabric__exporter__subcmd__history__subcmd__export"
                ;;
            fabric__exporter__subcmd__history,incidents)
                cmd="fabric__exporter__subcmd__history__subcmd__incidents"
                ;;
            fabric__exporter__subcmd__history,link)
                cmd="fabric__exporter__subcmd__history__subcmd__link"
                ;;
            fabric__exporter__subcmd__history,port)
                cmd="fabric__exporter__subcmd__history__subcmd__port"
                ;;
            fabric__exporter__subcmd__history,report)
                cmd="fabric__exporter__subcmd__history__subcmd__report"
                ;;
            fabric__exporter__subcmd__history,verdicts)
                cmd="fabric__exporter__subcmd__history__subcmd__verdicts"
                ;;
            *)
                ;;
        esac
    done

    case "${cmd}" in
        fabric__exporter)
            opts="-h -V --color --help --version serve links top nodes ports doctor history check demo completions"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 1 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        fabric__subcmd__exporter__subcmd__check)
            opts="-h --config.file --web.config.file --color --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config.file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --web.config.file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        fabric__subcmd__exporter__subcmd__completions)
            opts="-h --color --help bash zsh fish"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        fabric__subcmd__exporter__subcmd__demo)
            opts="-h --scenario --topology --hosts --speedup --clock --open --fabric.name --fabric.discovery-interval --fabric.forget-after --fabric.node-name-map --fabric.host-regex --fabric.totals-from --fabric.totals-password-file --fabric.totals-ca-file --fabric.totals-cert-file --fabric.totals-key-file --fabric.m-key-file --fabric.vs-key-file --fabric.pkey --fabric.details --fabric.details-interval --fabric.fec --fabric.registers --no-fabric.registers --fabric.physical-interval --fabric.lanes --fabric.module-interval --fabric.environment-interval --fabric.clear-saturated --fabric.smp-window --fabric.gmp-window --fabric.smp-lid-window --fabric.gmp-lid-window --fabric.timeout --fabric.retries --fabric.capture --fabric.capture-limit --health.maintenance-file --health.drained-hosts-file --health.ber-confidence --health.flap-days --health.flap-window --history.traffic-retention --history.retention --no-history --no-past --web.telemetry-path --web.profile --web.allowed-hosts --web.external-url --web.grafana-url --web.config.file --web.systemd-socket --log.format --process.confine --process.user --process.allow-root --web.listen-address --log.level --fabric.interval --history.file --history.size --fabric.hca --fabric.port --color --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --scenario)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --topology)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hosts)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --speedup)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --clock)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.name)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.discovery-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.forget-after)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.node-name-map)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.host-regex)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.totals-from)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.totals-password-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.totals-ca-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.totals-cert-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.totals-key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.m-key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.vs-key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.pkey)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.details)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --fabric.details-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.fec)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --fabric.physical-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.lanes)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --fabric.module-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.environment-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.clear-saturated)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --fabric.smp-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.gmp-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.smp-lid-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.gmp-lid-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.retries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.capture)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.capture-limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --health.maintenance-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --health.drained-hosts-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --health.ber-confidence)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --health.flap-days)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --health.flap-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --history.traffic-retention)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --history.retention)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --web.telemetry-path)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --web.profile)
                    COMPREPLY=($(compgen -W "full lean" -- "${cur}"))
                    return 0
                    ;;
                --web.allowed-hosts)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --web.external-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --web.grafana-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --web.config.file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --web.systemd-socket)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --log.format)
                    COMPREPLY=($(compgen -W "logfmt json" -- "${cur}"))
                    return 0
                    ;;
                --process.confine)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --process.user)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --process.allow-root)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --web.listen-address)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --log.level)
                    COMPREPLY=($(compgen -W "error warn info debug" -- "${cur}"))
                    return 0
                    ;;
                --fabric.interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --history.file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --history.size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.hca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        fabric__subcmd__exporter__subcmd__doctor)
            opts="-h --json --offline --path.dev --config.file --fabric.name --fabric.hca --fabric.port --fabric.discovery-interval --fabric.forget-after --fabric.node-name-map --fabric.host-regex --fabric.totals-from --fabric.totals-password-file --fabric.totals-ca-file --fabric.totals-cert-file --fabric.totals-key-file --fabric.m-key-file --fabric.vs-key-file --fabric.pkey --fabric.details --fabric.details-interval --fabric.fec --fabric.registers --no-fabric.registers --fabric.physical-interval --fabric.lanes --fabric.module-interval --fabric.environment-interval --fabric.clear-saturated --fabric.smp-window --fabric.gmp-window --fabric.smp-lid-window --fabric.gmp-lid-window --fabric.timeout --fabric.retries --fabric.capture --fabric.capture-limit --host.device-include --host.device-exclude --host.error-backoff --host.events --host.ethtool --host.modules --host.cm-counters --collector.fabric --no-collector.fabric --collector.host --no-collector.host --health.maintenance-file --health.drained-hosts-file --health.ber-confidence --health.flap-days --health.flap-window --history.file --history.size --history.traffic-retention --history.retention --web.listen-address --web.telemetry-path --web.profile --web.allowed-hosts --web.external-url --web.grafana-url --web.config.file --web.systemd-socket --log.format --process.confine --process.user --process.allow-root --path.sysfs --path.procfs --fabric.interval --host.interval --log.level --color --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --path.dev)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --config.file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.name)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.hca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.discovery-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.forget-after)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.node-name-map)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.host-regex)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.totals-from)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.totals-password-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.totals-ca-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.totals-cert-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.totals-key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.m-key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.vs-key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.pkey)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.details)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --fabric.details-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.fec)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --fabric.physical-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.lanes)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --fabric.module-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.environment-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.clear-saturated)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --fabric.smp-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.gmp-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.smp-lid-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.gmp-lid-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.retries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.capture)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.capture-limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --host.device-include)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --host.device-exclude)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --host.error-backoff)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --host.events)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --host.ethtool)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --host.modules)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --host.cm-counters)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --health.maintenance-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --health.drained-hosts-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --health.ber-confidence)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --health.flap-days)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --health.flap-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --history.file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --history.size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --history.traffic-retention)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --history.retention)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --web.listen-address)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --web.telemetry-path)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --web.profile)
                    COMPREPLY=($(compgen -W "full lean" -- "${cur}"))
                    return 0
                    ;;
                --web.allowed-hosts)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --web.external-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --web.grafana-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --web.config.file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --web.systemd-socket)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --log.format)
                    COMPREPLY=($(compgen -W "logfmt json" -- "${cur}"))
                    return 0
                    ;;
                --process.confine)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --process.user)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --process.allow-root)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --path.sysfs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --path.procfs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --host.interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --log.level)
                    COMPREPLY=($(compgen -W "error warn info debug" -- "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        fabric__subcmd__exporter__subcmd__history)
            opts="-h --file --source --url --source.ca-file --source.cert-file --source.key-file --source.password-file --from --between --color --help incidents events port link cable diff report verdicts export dump"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.ca-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.cert-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.password-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --from)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --between)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        fabric__subcmd__exporter__subcmd__history__subcmd__cable)
            opts="-h --json --file --source --url --source.ca-file --source.cert-file --source.key-file --source.password-file --from --between --color --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.ca-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.cert-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.password-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --from)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --between)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        fabric__subcmd__exporter__subcmd__history__subcmd__diff)
            opts="-h --limit --json --file --source --url --source.ca-file --source.cert-file --source.key-file --source.password-file --from --between --color --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.ca-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.cert-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.password-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --from)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --between)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        fabric__subcmd__exporter__subcmd__history__subcmd__dump)
            opts="-o -h --output --force --since --until --at --file --source --url --source.ca-file --source.cert-file --source.key-file --source.password-file --from --between --color --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --since)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --until)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --at)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.ca-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.cert-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.password-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --from)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --between)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        fabric__subcmd__exporter__subcmd__history__subcmd__events)
            opts="-h --node --link --kind --json --since --until --at --file --source --url --source.ca-file --source.cert-file --source.key-file --source.password-file --from --between --color --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --node)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --link)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --kind)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --since)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --until)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --at)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.ca-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.cert-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.password-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --from)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --between)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        fabric__subcmd__exporter__subcmd__history__subcmd__export)
            opts="-o -h --what --format --node --link --step --output --since --until --at --file --source --url --source.ca-file --source.cert-file --source.key-file --source.password-file --from --between --color --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --what)
                    COMPREPLY=($(compgen -W "counters events incidents" -- "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -W "csv jsonl openmetrics" -- "${cur}"))
                    return 0
                    ;;
                --node)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --link)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --step)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --since)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --until)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --at)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.ca-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.cert-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.password-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --from)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --between)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        fabric__subcmd__exporter__subcmd__history__subcmd__incidents)
            opts="-h --severity --kind --events --json --since --until --at --file --source --url --source.ca-file --source.cert-file --source.key-file --source.password-file --from --between --color --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --severity)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --kind)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --since)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --until)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --at)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.ca-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.cert-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.password-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --from)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --between)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        fabric__subcmd__exporter__subcmd__history__subcmd__link)
            opts="-h --readings --json --since --until --at --file --source --url --source.ca-file --source.cert-file --source.key-file --source.password-file --from --between --color --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --since)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --until)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --at)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.ca-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.cert-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.password-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --from)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --between)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        fabric__subcmd__exporter__subcmd__history__subcmd__port)
            opts="-h --readings --json --since --until --at --file --source --url --source.ca-file --source.cert-file --source.key-file --source.password-file --from --between --color --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --since)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --until)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --at)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.ca-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.cert-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.password-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --from)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --between)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        fabric__subcmd__exporter__subcmd__history__subcmd__report)
            opts="-o -h --format --output --since --until --at --file --source --url --source.ca-file --source.cert-file --source.key-file --source.password-file --from --between --color --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --format)
                    COMPREPLY=($(compgen -W "html markdown json" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --since)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --until)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --at)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.ca-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.cert-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.password-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --from)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --between)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        fabric__subcmd__exporter__subcmd__history__subcmd__verdicts)
            opts="-h --json --until --at --since --file --source --url --source.ca-file --source.cert-file --source.key-file --source.password-file --from --between --color --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --until)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --at)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --since)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.ca-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.cert-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.password-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --from)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --between)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        fabric__subcmd__exporter__subcmd__links)
            opts="-h --suspect --node --serial --verdict --reason --spares --sort --json --limit --wide --watch --fail-on --for --from --between --fabric --config.file --url --source.ca-file --source.cert-file --source.key-file --source.password-file --fabric.name --fabric.hca --fabric.port --fabric.interval --fabric.discovery-interval --fabric.forget-after --fabric.node-name-map --fabric.host-regex --fabric.totals-from --fabric.totals-password-file --fabric.totals-ca-file --fabric.totals-cert-file --fabric.totals-key-file --fabric.m-key-file --fabric.vs-key-file --fabric.pkey --fabric.details --fabric.details-interval --fabric.fec --fabric.registers --no-fabric.registers --fabric.physical-interval --fabric.lanes --fabric.module-interval --fabric.environment-interval --fabric.clear-saturated --fabric.smp-window --fabric.gmp-window --fabric.smp-lid-window --fabric.gmp-lid-window --fabric.timeout --fabric.retries --fabric.capture --fabric.capture-limit --path.sysfs --path.procfs --color --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --node)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --serial)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --verdict)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --reason)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --sort)
                    COMPREPLY=($(compgen -W "verdict node errors ber flaps wait change" -- "${cur}"))
                    return 0
                    ;;
                --limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --watch)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fail-on)
                    COMPREPLY=($(compgen -W "bad watch unknown" -- "${cur}"))
                    return 0
                    ;;
                --for)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --from)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --between)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --config.file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.ca-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.cert-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.password-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.name)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.hca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.discovery-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.forget-after)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.node-name-map)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.host-regex)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.totals-from)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.totals-password-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.totals-ca-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.totals-cert-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.totals-key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.m-key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.vs-key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.pkey)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.details)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --fabric.details-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.fec)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --fabric.physical-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.lanes)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --fabric.module-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.environment-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.clear-saturated)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --fabric.smp-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.gmp-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.smp-lid-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.gmp-lid-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.retries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.capture)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.capture-limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --path.sysfs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --path.procfs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        fabric__subcmd__exporter__subcmd__nodes)
            opts="-h --type --node --down --verdict --sort --json --limit --wide --watch --fail-on --for --from --between --fabric --config.file --url --source.ca-file --source.cert-file --source.key-file --source.password-file --fabric.name --fabric.hca --fabric.port --fabric.interval --fabric.discovery-interval --fabric.forget-after --fabric.node-name-map --fabric.host-regex --fabric.totals-from --fabric.totals-password-file --fabric.totals-ca-file --fabric.totals-cert-file --fabric.totals-key-file --fabric.m-key-file --fabric.vs-key-file --fabric.pkey --fabric.details --fabric.details-interval --fabric.fec --fabric.registers --no-fabric.registers --fabric.physical-interval --fabric.lanes --fabric.module-interval --fabric.environment-interval --fabric.clear-saturated --fabric.smp-window --fabric.gmp-window --fabric.smp-lid-window --fabric.gmp-lid-window --fabric.timeout --fabric.retries --fabric.capture --fabric.capture-limit --path.sysfs --path.procfs --color --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --type)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --node)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --verdict)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --sort)
                    COMPREPLY=($(compgen -W "verdict node type lid temperature firmware" -- "${cur}"))
                    return 0
                    ;;
                --limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --watch)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fail-on)
                    COMPREPLY=($(compgen -W "bad watch unknown" -- "${cur}"))
                    return 0
                    ;;
                --for)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --from)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --between)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --config.file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.ca-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.cert-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.password-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.name)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.hca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.discovery-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.forget-after)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.node-name-map)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.host-regex)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.totals-from)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.totals-password-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.totals-ca-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.totals-cert-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.totals-key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.m-key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.vs-key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.pkey)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.details)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --fabric.details-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.fec)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --fabric.physical-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.lanes)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --fabric.module-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.environment-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.clear-saturated)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --fabric.smp-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.gmp-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.smp-lid-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.gmp-lid-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.retries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.capture)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.capture-limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --path.sysfs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --path.procfs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        fabric__subcmd__exporter__subcmd__ports)
            opts="-h --verdict --reason --sort --json --limit --wide --watch --fail-on --for --from --between --fabric --config.file --url --source.ca-file --source.cert-file --source.key-file --source.password-file --fabric.name --fabric.hca --fabric.port --fabric.interval --fabric.discovery-interval --fabric.forget-after --fabric.node-name-map --fabric.host-regex --fabric.totals-from --fabric.totals-password-file --fabric.totals-ca-file --fabric.totals-cert-file --fabric.totals-key-file --fabric.m-key-file --fabric.vs-key-file --fabric.pkey --fabric.details --fabric.details-interval --fabric.fec --fabric.registers --no-fabric.registers --fabric.physical-interval --fabric.lanes --fabric.module-interval --fabric.environment-interval --fabric.clear-saturated --fabric.smp-window --fabric.gmp-window --fabric.smp-lid-window --fabric.gmp-lid-window --fabric.timeout --fabric.retries --fabric.capture --fabric.capture-limit --path.sysfs --path.procfs --color --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --verdict)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --reason)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --sort)
                    COMPREPLY=($(compgen -W "port verdict errors wait" -- "${cur}"))
                    return 0
                    ;;
                --limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --watch)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fail-on)
                    COMPREPLY=($(compgen -W "bad watch unknown" -- "${cur}"))
                    return 0
                    ;;
                --for)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --from)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --between)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --config.file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.ca-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.cert-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.password-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.name)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.hca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.discovery-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.forget-after)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.node-name-map)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.host-regex)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.totals-from)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.totals-password-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.totals-ca-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.totals-cert-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.totals-key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.m-key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.vs-key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.pkey)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.details)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --fabric.details-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.fec)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --fabric.physical-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.lanes)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --fabric.module-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.environment-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.clear-saturated)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --fabric.smp-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.gmp-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.smp-lid-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.gmp-lid-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.retries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.capture)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.capture-limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --path.sysfs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --path.procfs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        fabric__subcmd__exporter__subcmd__serve)
            opts="-h --config.file --fabric.name --fabric.hca --fabric.port --fabric.interval --fabric.discovery-interval --fabric.forget-after --fabric.node-name-map --fabric.host-regex --fabric.totals-from --fabric.totals-password-file --fabric.totals-ca-file --fabric.totals-cert-file --fabric.totals-key-file --fabric.m-key-file --fabric.vs-key-file --fabric.pkey --fabric.details --fabric.details-interval --fabric.fec --fabric.registers --no-fabric.registers --fabric.physical-interval --fabric.lanes --fabric.module-interval --fabric.environment-interval --fabric.clear-saturated --fabric.smp-window --fabric.gmp-window --fabric.smp-lid-window --fabric.gmp-lid-window --fabric.timeout --fabric.retries --fabric.capture --fabric.capture-limit --host.interval --host.device-include --host.device-exclude --host.error-backoff --host.events --host.ethtool --host.modules --host.cm-counters --collector.fabric --no-collector.fabric --collector.host --no-collector.host --health.maintenance-file --health.drained-hosts-file --health.ber-confidence --health.flap-days --health.flap-window --history.file --history.size --history.traffic-retention --history.retention --web.listen-address --web.telemetry-path --web.profile --web.allowed-hosts --web.external-url --web.grafana-url --web.config.file --web.systemd-socket --log.level --log.format --process.confine --process.user --process.allow-root --path.sysfs --path.procfs --color --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config.file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.name)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.hca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.discovery-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.forget-after)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.node-name-map)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.host-regex)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.totals-from)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.totals-password-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.totals-ca-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.totals-cert-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.totals-key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.m-key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.vs-key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.pkey)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.details)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --fabric.details-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.fec)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --fabric.physical-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.lanes)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --fabric.module-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.environment-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.clear-saturated)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --fabric.smp-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.gmp-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.smp-lid-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.gmp-lid-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.retries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.capture)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.capture-limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --host.interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --host.device-include)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --host.device-exclude)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --host.error-backoff)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --host.events)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --host.ethtool)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --host.modules)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --host.cm-counters)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --health.maintenance-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --health.drained-hosts-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --health.ber-confidence)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --health.flap-days)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --health.flap-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --history.file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --history.size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --history.traffic-retention)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --history.retention)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --web.listen-address)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --web.telemetry-path)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --web.profile)
                    COMPREPLY=($(compgen -W "full lean" -- "${cur}"))
                    return 0
                    ;;
                --web.allowed-hosts)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --web.external-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --web.grafana-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --web.config.file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --web.systemd-socket)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --log.level)
                    COMPREPLY=($(compgen -W "error warn info debug" -- "${cur}"))
                    return 0
                    ;;
                --log.format)
                    COMPREPLY=($(compgen -W "logfmt json" -- "${cur}"))
                    return 0
                    ;;
                --process.confine)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --process.user)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --process.allow-root)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --path.sysfs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --path.procfs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        fabric__subcmd__exporter__subcmd__top)
            opts="-h --refresh --fabric --config.file --url --source.ca-file --source.cert-file --source.key-file --source.password-file --fabric.name --fabric.hca --fabric.port --fabric.interval --fabric.discovery-interval --fabric.forget-after --fabric.node-name-map --fabric.host-regex --fabric.totals-from --fabric.totals-password-file --fabric.totals-ca-file --fabric.totals-cert-file --fabric.totals-key-file --fabric.m-key-file --fabric.vs-key-file --fabric.pkey --fabric.details --fabric.details-interval --fabric.fec --fabric.registers --no-fabric.registers --fabric.physical-interval --fabric.lanes --fabric.module-interval --fabric.environment-interval --fabric.clear-saturated --fabric.smp-window --fabric.gmp-window --fabric.smp-lid-window --fabric.gmp-lid-window --fabric.timeout --fabric.retries --fabric.capture --fabric.capture-limit --path.sysfs --path.procfs --color --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --refresh)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --config.file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.ca-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.cert-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source.password-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.name)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.hca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.discovery-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.forget-after)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.node-name-map)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.host-regex)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.totals-from)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.totals-password-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.totals-ca-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.totals-cert-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.totals-key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.m-key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.vs-key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.pkey)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.details)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --fabric.details-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.fec)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --fabric.physical-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.lanes)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --fabric.module-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.environment-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.clear-saturated)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --fabric.smp-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.gmp-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.smp-lid-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.gmp-lid-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.retries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.capture)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fabric.capture-limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --path.sysfs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --path.procfs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
    esac
}

if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -F _fabric__exporter -o nosort -o bashdefault -o default fabric-exporter
else
    complete -F _fabric__exporter -o bashdefault -o default fabric-exporter
fi
