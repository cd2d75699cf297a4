internal import MartletCore
internal import MartletPages
internal import MartletProvider
internal import MartletRedis
internal import MartletReports
internal import MartletResponder

/// The dashboard at `/` of the admin listener: one HTML document without scripts and external resources.
struct Dashboard {
    /// Forbids scripts and external resources, in case a text is not escaped.
    static let contentPolicy =
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    private static let refreshSeconds = 5
    /// Certificates that expire within so many seconds are marked.
    private static let certificateWarning = 14 * 86_400

    private let report: AdminReport
    private let traffic: Traffic

    init(_ report: AdminReport) {
        self.report = report
        traffic = Traffic(report.loops)
    }

    var response: LocalResponse { response(document) }

    /// The page of the endpoints alone.
    var upstreamsResponse: LocalResponse { response(document(of: upstreams)) }

    private func response(_ document: HTML) -> LocalResponse {
        LocalResponse(
            status: 200,
            fields: [
                ("Content-Type", "text/html; charset=utf-8"), ("Cache-Control", "no-store"),
                ("Content-Security-Policy", Dashboard.contentPolicy), ("X-Content-Type-Options", "nosniff"),
                ("Referrer-Policy", "no-referrer"),
            ], body: Array(document.text.utf8))
    }

    var html: String { document.text }

    private var document: HTML {
        document(
            of: """
                \(tiles)
                \(checks)
                \(routes)
                <div class="pair">
                \(rejections)
                \(upstreams)
                </div>
                <div class="pair">
                \(providers)
                \(store)
                </div>
                <div class="pair">
                \(transport)
                \(certificates)
                </div>
                <div class="pair">
                \(loops)
                \(process)
                </div>
                """)
    }

    private func document(of sections: HTML) -> HTML {
        """
        <!doctype html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta http-equiv="refresh" content="\(String(Dashboard.refreshSeconds))">
        <title>Martlet: \(report.readiness.state.rawValue)</title>
        \(HTML.style(DashboardStyle.sheet))
        </head>
        <body>
        \(header)
        <main>
        \(sections)
        </main>
        <footer>Refreshed every \(String(Dashboard.refreshSeconds)) s. Counts since startup.
        <a href="/metrics">metrics</a> <a href="/upstreams">upstreams</a> <a href="/readyz">readyz</a> <a href="/livez">livez</a></footer>
        </body>
        </html>

        """
    }

    // MARK: Sections

    private var header: HTML {
        let state = report.readiness.state
        let addresses = report.addresses.joined(separator: ", ")
        return """
            <header>
            <div class="name"><b>Martlet</b> <span>\(report.version)</span></div>
            <div class="where">\(addresses)</div>
            <div class="state \(StatusLevel(state).name)">\(state.rawValue)</div>
            </header>
            """
    }

    private var tiles: HTML {
        var all = LatencyHistogram()
        for (_, histogram) in traffic.latency { all.add(histogram) }
        let total = traffic.count()
        let uptime = report.now.seconds - report.startedAt.seconds
        let lookups = traffic.tokens.hits + traffic.tokens.misses
        let tiles = [
            tile("Uptime", NumberFormat.duration(uptime), "version \(report.version)"),
            tile("Requests", NumberFormat.count(total), NumberFormat.rate(total, seconds: uptime)),
            tile(
                "Errors 5xx", NumberFormat.count(traffic.count(class: 5)),
                "\(NumberFormat.share(traffic.count(class: 5), of: total)) of all"),
            tile(
                "Latency p50", NumberFormat.latency(all.quantile(0.5)),
                "p95 \(NumberFormat.latency(all.quantile(0.95)))"),
            tile("Latency p99", NumberFormat.latency(all.quantile(0.99)), "all routes"),
            tile(
                "Connections", NumberFormat.count(traffic.connections.open),
                "\(traffic.openExchanges) requests in progress"),
            tile(
                "Cached decisions", NumberFormat.count(traffic.tokens.entries),
                "\(NumberFormat.share(traffic.tokens.hits, of: lookups)) hits"),
            tile("Memory", report.process.residentBytes.map(NumberFormat.bytes) ?? "–", "resident"),
        ]
        return "<section class=\"tiles\">\(HTML.joined(tiles))</section>"
    }

    private func tile(_ title: String, _ value: String, _ note: String) -> HTML {
        "<div class=\"tile\"><h2>\(title)</h2><strong>\(value)</strong><small>\(note)</small></div>"
    }

    private var checks: HTML {
        let rows = report.readiness.checks.map { check -> HTML in
            """
            <tr><th scope="row">\(check.name)</th><td>\(badge(check.state, check.isHealthy ? .ok : .error))</td>\
            <td class="wide">\(check.detail)</td></tr>
            """
        }
        return table("Checks", ["Dependency", "State", "Detail"], rows, empty: "No external dependencies.")
    }

    private func title(of route: String) -> String {
        if route == "-" { return "– (no route)" }
        return report.routes.contains(route) || report.ownRoutes.contains(route) ? route : "\(route) (removed)"
    }

    private var routes: HTML {
        let retired = Set(traffic.requests.map(\.key.route)).subtracting(report.routes).sorted()
        let rows = (report.routes + retired).map { route -> HTML in
            let histogram = traffic.latency[route]
            let title = title(of: route)
            let counts = HTML.joined(
                (2...5).map { digit in
                    let count = traffic.count(route: route, class: digit)
                    return
                        "<td class=\"n \(digit >= 4 && count > 0 ? "c\(digit)" : "")\">\(NumberFormat.count(count))</td>"
                })
            let times = HTML.joined(
                [0.5, 0.95, 0.99].map { "<td class=\"n\">\(NumberFormat.latency(histogram?.quantile($0)))</td>" })
            return """
                <tr><th scope="row">\(title)</th><td class="n">\(NumberFormat.count(traffic.count(route: route)))</td>\(counts)\(times)\
                <td class="wide">\(statuses(of: route))</td></tr>
                """
        }
        let columns = ["Route", "#Requests", "#2xx", "#3xx", "#4xx", "#5xx", "#p50", "#p95", "#p99", "Statuses"]
        return table("Routes", columns, rows, empty: "No routes.")
    }

    private func statuses(of route: String) -> String {
        var counts: [Int: Int] = [:]
        for row in traffic.requests where row.key.route == route { counts[row.key.status, default: 0] += row.value }
        return counts.sorted { $0.key < $1.key }.map { "\($0.key)\u{00D7}\($0.value)" }.joined(separator: " · ")
    }

    private var rejections: HTML {
        let most = traffic.rejections.map(\.count).max() ?? 1
        let rows = traffic.rejections.map { reason, count -> HTML in
            """
            <tr><th scope="row">\(reason)</th><td class="n">\(NumberFormat.count(count))</td>\
            <td class="wide"><svg class="bar" aria-hidden="true"><rect width="\(String(count * 100 / max(most, 1)))%"/></svg></td></tr>
            """
        }
        return table("Rejections", ["Reason", "#Count", ""], rows, empty: "None.")
    }

    private var upstreams: HTML {
        let loops = report.loops.count
        let rows = traffic.endpoints.map { key, endpoint -> HTML in
            let isEjected = endpoint.ejectingLoops > 0
            let level: StatusLevel =
                switch endpoint.state {
                case .healthy: endpoint.failures > 0 ? .warning : .ok
                case .slowStart, .draining: .warning
                case .ejected: endpoint.ejectingLoops == loops ? .error : .warning
                case .unhealthy: .error
                }
            let isFailing = endpoint.state == .healthy && endpoint.failures > 0
            let state = isFailing ? "failing" : endpoint.state.rawValue
            let note = isEjected ? " by \(endpoint.ejectingLoops) of \(loops) loops" : ""
            let reason = endpoint.reason.isEmpty ? "" : ": \(endpoint.reason)"
            let since = endpoint.age.map { ", for \(NumberFormat.duration($0 / 1_000_000_000))" } ?? ""
            let panic = endpoint.isPanicking ? " (all endpoints are used: too few are usable)" : ""
            let address = key.address.map { " (\($0))" } ?? ""
            return """
                <tr><th scope="row">\(key.upstream)</th><td>\(key.endpoint)\(address)</td>\
                <td>\(badge(state, level))\(note)\(reason)\(since)\(panic)</td>\
                <td class="n">\(String(endpoint.active))</td><td class="n">\(String(endpoint.idle))</td>\
                <td class="n">\(String(endpoint.failures))</td></tr>
                """
        }
        return table(
            "Upstreams", ["Upstream", "Endpoint", "State", "#Active", "#Idle", "#Failures"], rows,
            empty: "No upstreams.")
    }

    private var providers: HTML {
        let rows = report.providers.map { provider -> HTML in
            let gauges = (provider.health?.gauges ?? []).map { "\($0.name) \(MetricsWriter.number($0.value))" }
            let state = provider.health?.state
            let stateBadge =
                state.map { badge($0.rawValue, $0 == .ready ? .ok : $0 == .degraded ? .warning : .error) } ?? "–"
            return """
                <tr><th scope="row">\(provider.name)</th><td>\(provider.kind)</td><td>\(stateBadge)</td>\
                <td class="wide">\(provider.health?.detail ?? "")<br><small>\(gauges.joined(separator: " · "))</small></td></tr>
                """
        }
        return table("Providers", ["Provider", "Kind", "State", "Keys"], rows, empty: "No providers.")
    }

    private var store: HTML {
        switch report.store {
        case .memory:
            return table(
                "Store", ["Kind", "State"], ["<tr><th scope=\"row\">memory</th><td>\(badge("ready", .ok))</td></tr>"],
                empty: "")
        case .redis(let status):
            let isConnected = status.state == .connected
            let since = NumberFormat.duration(report.monotonicNow.since(status.since).wholeSeconds)
            let latency = status.lastLatency.map { Double($0.wholeNanoseconds) / 1000 }
            let failures = status.failures.sorted { $0.key.rawValue < $1.key.rawValue }
                .map { "\($0.key.rawValue) \($0.value)" }.joined(separator: ", ")
            return list(
                "Store",
                [
                    ("Redis", "\(badge(status.state.rawValue, isConnected ? .ok : .error)) for \(since)"),
                    ("Last error", "\(status.lastError?.description ?? "none")"),
                    ("Reconnects", "\(NumberFormat.count(status.reconnects))"),
                    ("Commands", "\(NumberFormat.count(status.commands))"),
                    ("Failures", "\(failures.isEmpty ? "none" : failures)"),
                    ("Last latency", "\(NumberFormat.latency(latency))"),
                ])
        }
    }

    private var transport: HTML {
        let handshakes = traffic.handshakes
        let failures = handshakes.failures.map { "\($0.outcome) \(NumberFormat.count($0.count))" }
        let versions = handshakes.versions.map { "\($0.version) \(NumberFormat.count($0.count))" }
        let rejections = traffic.connections.proxyHeaderRejections.sorted { $0.key < $1.key }
            .map { "\($0.key) \($0.value)" }
        let ends = traffic.tunnels.ends.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
        return list(
            "Transport",
            [
                ("TLS handshakes", "\(versions.isEmpty ? "none" : versions.joined(separator: ", "))"),
                (
                    "Resumed",
                    "\(NumberFormat.count(handshakes.resumed)), \(NumberFormat.share(handshakes.resumed, of: handshakes.succeeded))"
                ),
                ("Failed", "\(failures.isEmpty ? "none" : failures.joined(separator: ", "))"),
                (
                    "HTTP/2 connections",
                    """
                    \(NumberFormat.count(traffic.http2.openConnections)) open of \(NumberFormat.count(traffic.http2.connections)), \
                    \(NumberFormat.count(traffic.http2.errors)) closed for a protocol error
                    """
                ),
                (
                    "HTTP/2 streams",
                    """
                    \(NumberFormat.count(traffic.http2.openStreams)) open of \(NumberFormat.count(traffic.http2.streams)), \
                    \(NumberFormat.count(traffic.http2.resets)) reset by clients
                    """
                ),
                (
                    "Upgrades",
                    """
                    \(NumberFormat.count(traffic.tunnels.open)) open of \(NumberFormat.count(traffic.tunnels.opened)), \
                    \(NumberFormat.count(traffic.tunnels.rejectedUpgrades)) rejected
                    """
                ),
                ("Tunnels closed", "\(ends.isEmpty ? "none" : ends.joined(separator: ", "))"),
                ("PROXY header errors", "\(rejections.isEmpty ? "none" : rejections.joined(separator: ", "))"),
            ])
    }

    private var certificates: HTML {
        let rows = report.certificates.map { certificate -> HTML in
            let left = certificate.secondsLeft
            let level: StatusLevel =
                !certificate.isValid ? .error : left < Dashboard.certificateWarning ? .warning : .ok
            let state = level == .error ? "not valid" : level == .warning ? "expires soon" : "valid"
            let days = left / 86_400
            return """
                <tr><th scope="row">\(certificate.name)</th><td>\(certificate.side)</td><td>\(badge(state, level))</td>\
                <td class="n">\(String(days))</td><td class="wide">\(certificate.file)</td></tr>
                """
        }
        return table(
            "Certificates", ["Name", "Side", "State", "#Days left", "File"], rows, empty: "No certificates.")
    }

    private var loops: HTML {
        let rows = report.loops.map { loop -> HTML in
            let requests = loop.requests.reduce(0) { $0 + $1.count }
            return """
                <tr><th scope="row">\(String(loop.loop))</th><td class="n">\(NumberFormat.count(requests))</td>\
                <td class="n">\(NumberFormat.count(loop.connections.open))</td><td class="n">\(NumberFormat.count(loop.openExchanges))</td>\
                <td class="n">\(NumberFormat.count(loop.connections.accepted))</td>\
                <td class="n">\(NumberFormat.count(loop.connections.refused))</td><td class="n">\(NumberFormat.count(loop.tokens.entries))</td></tr>
                """
        }
        let silent = report.loops.count - report.respondingLoops
        let title = silent > 0 ? "Loops (\(silent) not responding)" : "Loops"
        let columns = ["Loop", "#Requests", "#Open", "#In progress", "#Accepted", "#Rejected", "#Cached decisions"]
        return table(title, columns, rows, empty: "No loop has reported yet.")
    }

    private var process: HTML {
        let process = report.process
        let reloads = report.reloads
        let descriptors =
            "\(process.openDescriptors.map(NumberFormat.count) ?? "–") of \(process.descriptorLimit.map(NumberFormat.count) ?? "–")"
        return list(
            "Process",
            [
                ("Version", "\(report.version)"),
                ("Started", "\(HTTPDateText.text(report.startedAt))"),
                (
                    "Configuration",
                    """
                    \(badge(reloads.isCurrent ? "current" : "last reload failed", reloads.isCurrent ? .ok : .error)) \
                    since \(HTTPDateText.text(reloads.loadedAt))
                    """
                ),
                (
                    "Reloads",
                    "\(NumberFormat.count(reloads.succeeded)) succeeded, \(NumberFormat.count(reloads.failed)) failed"
                ),
                ("CPU time", "\(process.processorSeconds.map { NumberFormat.duration(Int64($0)) } ?? "–")"),
                ("Threads", "\(process.threads.map(NumberFormat.count) ?? "–")"),
                ("Open files", "\(descriptors)"),
                ("Log batches dropped", "\(NumberFormat.count(report.droppedLogBatches))"),
            ])
    }

    // MARK: Components

    private func badge(_ text: String, _ level: StatusLevel) -> HTML {
        "<span class=\"badge \(level.name)\">\(text)</span>"
    }

    /// A table; a column whose title begins with `#` contains numbers.
    private func table(_ title: String, _ columns: [String], _ rows: [HTML], empty: String) -> HTML {
        guard !rows.isEmpty else { return "<section><h2>\(title)</h2><p class=\"empty\">\(empty)</p></section>" }
        let heads = columns.map { column -> HTML in
            let isNumber = column.hasPrefix("#")
            return
                "<th scope=\"col\"\(attribute: "class", isNumber ? "n" : nil)>\(isNumber ? String(column.dropFirst()) : column)</th>"
        }
        return """
            <section><h2>\(title)</h2><div class="scroll"><table><thead><tr>\(HTML.joined(heads))</tr></thead>
            <tbody>\(HTML.joined(rows))</tbody></table></div></section>
            """
    }

    private func list(_ title: String, _ entries: [(String, HTML)]) -> HTML {
        let rows = entries.map { name, value -> HTML in
            "<tr><th scope=\"row\">\(name)</th><td class=\"wide\">\(value)</td></tr>"
        }
        return "<section><h2>\(title)</h2><table><tbody>\(HTML.joined(rows))</tbody></table></section>"
    }
}

/// The color of a state, which is always shown as text, too.
private enum StatusLevel {
    case ok, warning, error

    init(_ state: Readiness.State) {
        self =
            switch state {
            case .ready: .ok
            case .degraded, .draining: .warning
            case .unavailable: .error
            }
    }

    var name: String {
        switch self {
        case .ok: "ok"
        case .warning: "warning"
        case .error: "error"
        }
    }
}
