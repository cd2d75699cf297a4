internal import MartletAdmin
internal import MartletConfig
internal import MartletCore
internal import MartletFetch
internal import MartletTracing

/// The traces of requests, for all event loops of the process.
final class Traces: GatewayPart {
    /// How long the end of the process waits for the collector.
    private static let flushTime = Duration.seconds(2)

    private let logger: Logger
    private let exporter: TraceExporter

    init(_ services: Services) {
        logger = services.logger.with(("component", "tracing"))
        exporter = TraceExporter(
            TraceDocument.Resource(version: Gateway.version, instance: services.sink.instanceID),
            clock: services.clock, logger: logger)
    }

    var receiver: any SpanReceiving { exporter }

    func lead(_ change: GatewayChange, in gateway: Gateway) {
        let configuration = change.configuration
        do throws(HTTPCallError) {
            try exporter.follow(
                configuration.tracing.map { tracing in
                    ExportTarget(
                        url: tracing.url, fields: tracing.headers.map { ($0.name, $0.value) },
                        route: OutboundRoute(nil, configuration.outbound))
                })
        } catch {
            logger.error("tracing not started", ("code", "\(error.code)"), ("reason", error.message))
        }
    }

    /// The spans so far, counted by outcome.
    func report(into report: inout AdminReport, of graph: Graph, in gateway: Gateway) {
        guard graph.blueprint.configuration.tracing != nil else { return }
        let counts = exporter.counts
        report.tracing = (counts.sent, SpanLoss.allCases.map { ($0.rawValue, counts.lost[$0] ?? 0) })
    }

    func stop(in gateway: Gateway) async { await exporter.stop(within: Self.flushTime) }
}
