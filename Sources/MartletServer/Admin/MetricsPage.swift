internal import MartletProxy

/// `/metrics` in the Prometheus text format.
struct MetricsPage {
    let text: String

    init(_ gateway: Gateway) async {
        let reports = await gateway.reports()
        let open = reports.reduce(0) { $0 + $1.openConnections }
        text = "# TYPE martlet_connections_open gauge\nmartlet_connections_open \(open)\n"
    }
}
