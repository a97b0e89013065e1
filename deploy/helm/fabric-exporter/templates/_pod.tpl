{{/* A pod of one component (`it`); `root` is the context of the chart. */}}
{{- define "fabric-exporter.pod" -}}
{{- $root := .root -}}
{{- $it := .it -}}
{{- $settings := $it.settings -}}
{{- $webSecret := include "fabric-exporter.webSecret" $root -}}
{{- $tlsSecret := $root.Values.webConfig.tlsSecret -}}
{{- $device := default dict $settings.device -}}
{{- $privileged := eq (default "" $device.mode) "privileged" -}}
{{- $user := int (ternary $settings.runAsUser 65532 (hasKey $settings "runAsUser")) -}}
{{- $history := and $settings.history $settings.history.enabled -}}
metadata:
  labels:
    {{- /* No label that changes with the version of the chart: pods would restart. */}}
    {{- include "fabric-exporter.selector" $root | nindent 4 }}
    app.kubernetes.io/component: {{ $it.name }}
    {{- with $settings.fabric }}
    fabric-exporter/fabric: {{ . | quote }}
    {{- end }}
    {{- with $root.Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- if or $it.config $root.Values.podAnnotations }}
  annotations:
    {{- with $it.config }}
    # The exporter reads its configuration at its start: a changed one restarts the pod.
    checksum/config: {{ toYaml . | sha256sum }}
    {{- end }}
    {{- with $root.Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- end }}
spec:
  serviceAccountName: {{ include "fabric-exporter.serviceAccount" $root }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- if $settings.hostNetwork }}
  hostNetwork: true
  dnsPolicy: ClusterFirstWithHostNet
  {{- end }}
  {{- with $root.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $root.Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  securityContext:
    runAsNonRoot: {{ ne $user 0 }}
    runAsUser: {{ $user }}
    runAsGroup: {{ $user }}
    {{- if or $history $webSecret $tlsSecret }}
    # Otherwise only root can write to the volume.
    fsGroup: {{ $user }}
    fsGroupChangePolicy: OnRootMismatch
    {{- end }}
    {{- if not (kindIs "invalid" $settings.deviceGroup) }}
    supplementalGroups: [{{ int $settings.deviceGroup }}]
    {{- end }}
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: fabric-exporter
      image: {{ include "fabric-exporter.image" $root | quote }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      args:
        {{- range $it.args }}
        - {{ . | quote }}
        {{- end }}
        {{- if $webSecret }}
        - --web.config.file=/etc/fabric-exporter-web/web-config.yml
        {{- end }}
        {{- range $settings.extraArgs }}
        - {{ . | quote }}
        {{- end }}
      ports:
        - name: http
          containerPort: {{ int $settings.port }}
          protocol: TCP
      {{- if $webSecret }}
      # With TLS and logins the kubelet can only test whether the port is open.
      livenessProbe:
        tcpSocket: {port: http}
        periodSeconds: 30
      readinessProbe:
        tcpSocket: {port: http}
      {{- else }}
      livenessProbe:
        httpGet: {path: /-/healthy, port: http}
        periodSeconds: 30
        timeoutSeconds: 5
      # Ready after the first sweep. Prometheus also scrapes pods that are not ready: see the Service.
      readinessProbe:
        httpGet: {path: /-/ready, port: http}
        timeoutSeconds: 5
      {{- end }}
      securityContext:
        {{- if $privileged }}
        # Without a device plugin there is no other access to a device. A user other than root still has no effective
        # capabilities.
        privileged: true
        {{- else }}
        allowPrivilegeEscalation: false
        {{- end }}
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      {{- $resources := deepCopy $settings.resources }}
      {{- if eq (default "" $device.mode) "plugin" }}
      {{- $resources = mergeOverwrite $resources (dict "requests" (dict $device.resource 1) "limits" (dict $device.resource 1)) }}
      {{- end }}
      {{- with $resources }}
      resources:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- if or $it.config $webSecret $tlsSecret }}
      volumeMounts:
        {{- if $it.config }}
        - {name: config, mountPath: /etc/fabric-exporter, readOnly: true}
        - {name: sys, mountPath: /host/sys, readOnly: true}
        {{- end }}
        {{- if $privileged }}
        - {name: infiniband, mountPath: /dev/infiniband}
        {{- end }}
        {{- if $history }}
        - {name: history, mountPath: /var/lib/fabric-exporter}
        {{- end }}
        {{- if $webSecret }}
        - {name: web, mountPath: /etc/fabric-exporter-web, readOnly: true}
        {{- end }}
        {{- if $tlsSecret }}
        - {name: tls, mountPath: /etc/fabric-exporter-tls, readOnly: true}
        {{- end }}
      {{- end }}
  {{- if or $it.config $webSecret $tlsSecret }}
  volumes:
    {{- if $it.config }}
    - name: config
      configMap:
        name: {{ include "fabric-exporter.fullname" $root }}-{{ $it.name }}
    # The sysfs of the pod's own network namespace lacks the interfaces of the node.
    - name: sys
      hostPath: {path: /sys, type: Directory}
    {{- end }}
    {{- if $privileged }}
    - name: infiniband
      hostPath: {path: /dev/infiniband, type: Directory}
    {{- end }}
    {{- if $history }}
    - name: history
      persistentVolumeClaim:
        claimName: {{ default (printf "%s-%s" (include "fabric-exporter.fullname" $root) $it.name) $settings.history.existingClaim }}
    {{- end }}
    {{- if $webSecret }}
    - name: web
      secret:
        secretName: {{ $webSecret }}
        defaultMode: 288 # 0440; not all YAML parsers read that as octal
    {{- end }}
    {{- if $tlsSecret }}
    - name: tls
      secret:
        secretName: {{ $tlsSecret }}
        defaultMode: 288 # 0440; not all YAML parsers read that as octal
    {{- end }}
  {{- end }}
  {{- with $settings.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if $settings.affinity }}
  affinity:
    {{- toYaml $settings.affinity | nindent 4 }}
  {{- else if $settings.fabric }}
  # Two exporters of one fabric must not run on the same node.
  affinity:
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
        - weight: 100
          podAffinityTerm:
            topologyKey: kubernetes.io/hostname
            labelSelector:
              matchLabels:
                {{- include "fabric-exporter.selector" $root | nindent 16 }}
                fabric-exporter/fabric: {{ $settings.fabric | quote }}
  {{- end }}
  {{- with $settings.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
