internal import MartletResponder

/// `/metrics` in the Prometheus text format or as OpenMetrics, summed over the loops.
struct MetricsPage {
    let text: String

    /// The page in the format that a request prefers.
    static func response(_ report: AdminReport, accept: String?) -> LocalResponse {
        let format = MetricsFormat(accept: accept)
        return .text(200, format.mediaType, MetricsPage(report, format).text)
    }

    init(_ report: AdminReport, _ format: MetricsFormat = .prometheus) {
        let source = MetricsSource(report)
        var out = MetricsWriter(format)
        let plugins = MetricFamily.plugins(report.providers)
        for family in MetricFamily.beforePlugins + plugins + MetricFamily.afterPlugins {
            if let samples = family.samples(source) { out.write(family, samples) }
        }
        text = out.whole
    }
}
