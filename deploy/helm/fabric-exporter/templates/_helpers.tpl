{{- define "fabric-exporter.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 39 | trimSuffix "-" -}}
{{- end -}}

{{/* Names of objects are this and up to 24 more characters: Kubernetes accepts 63. */}}
{{- define "fabric-exporter.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 39 | trimSuffix "-" -}}
{{- else if contains (include "fabric-exporter.name" .) .Release.Name -}}
{{- .Release.Name | trunc 39 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "fabric-exporter.name" .) | trunc 39 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "fabric-exporter.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "fabric-exporter.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "fabric-exporter.selector" -}}
app.kubernetes.io/name: {{ include "fabric-exporter.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "fabric-exporter.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "fabric-exporter.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "fabric-exporter.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository (default .Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "fabric-exporter.webSecret" -}}
{{- if .Values.webConfig.existingSecret -}}
{{- .Values.webConfig.existingSecret -}}
{{- else if .Values.webConfig.content -}}
{{- include "fabric-exporter.fullname" . }}-web
{{- end -}}
{{- end -}}

{{/*
The workloads as a list, so that each template has a kind of object only once. Each has `name`, `kind`, `settings` (its
section of the values), `config` (the exporter's configuration) and `args`.
*/}}
{{- define "fabric-exporter.components" -}}
{{- $root := . -}}
{{- $all := list -}}
{{- if .Values.hosts.enabled -}}
{{- $own := dict "collector" (dict "fabric" false "host" true) "path" (dict "sysfs" "/host/sys") "web" (dict "listen-address" (list (printf ":%d" (int .Values.hosts.port)))) -}}
{{- /* Rules join the ports of hosts to the sweep by the label `fabric`. */ -}}
{{- $names := list -}}
{{- range .Values.fabrics -}}
{{- $names = append $names (default .name .fabric) -}}
{{- end -}}
{{- if eq (len (uniq $names)) 1 -}}
{{- $_ := set $own "fabric" (dict "name" (first $names)) -}}
{{- end -}}
{{- $config := mergeOverwrite (dict) $own (deepCopy .Values.config) (deepCopy .Values.hosts.config) -}}
{{- $all = append $all (dict "name" "hosts" "kind" "DaemonSet" "settings" .Values.hosts "config" $config "args" (list "serve" "--config.file=/etc/fabric-exporter/config.yml")) -}}
{{- end -}}
{{- range .Values.fabrics -}}
{{- $settings := mergeOverwrite (deepCopy $root.Values.fabricDefaults) (deepCopy .) -}}
{{- $fabric := default .name .fabric -}}
{{- $_ := set $settings "fabric" $fabric -}}
{{- $own := dict "collector" (dict "fabric" true "host" false) "path" (dict "sysfs" "/host/sys") "web" (dict "listen-address" (list (printf ":%d" (int $settings.port)))) "fabric" (dict "name" $fabric) -}}
{{- if $settings.history.enabled -}}
{{- $_ := set $own "history" (dict "file" "/var/lib/fabric-exporter/history.db") -}}
{{- end -}}
{{- $config := mergeOverwrite (dict) $own (deepCopy $root.Values.config) (deepCopy $settings.config) -}}
{{- $all = append $all (dict "name" .name "kind" "Deployment" "settings" $settings "config" $config "args" (list "serve" "--config.file=/etc/fabric-exporter/config.yml")) -}}
{{- end -}}
{{- if .Values.demo.enabled -}}
{{- $settings := merge (dict "port" 10315) (deepCopy .Values.demo) -}}
{{- $all = append $all (dict "name" "demo" "kind" "Deployment" "settings" $settings "args" (list "demo" "--web.listen-address=:10315")) -}}
{{- end -}}
{{- toJson $all -}}
{{- end -}}
