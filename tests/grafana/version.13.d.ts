/** Of options that Grafana 10 did not have a newer one takes its default. */
export type Given<Options> = Partial<Options>;
