/** Grafana 10 wants all options of a panel that it knows. */
export type Given<Options> = Options;
