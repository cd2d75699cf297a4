internal import MartletCore
internal import MartletProvider
internal import MartletProxy
internal import MartletRedis

/// The page for operators at `/` of the admin listener: one document without script and without anything from outside.
struct Dashboard {
    /// Nothing is loaded and nothing runs, whatever a text on the page might say.
    static let contentPolicy =
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    private static let refreshSeconds = 5
    /// A certificate with less left than this, in seconds, is due.
    private static let certificateWarning = 14 * 86_400

    private let report: AdminReport
    private let traffic: Traffic

    init(_ report: AdminReport) {
        self.report = report
        traffic = Traffic(report.loops)
    }

    var response: LocalResponse {
        LocalResponse(
            status: 200,
            fields: [
                ("Content-Type", "text/html; charset=utf-8"), ("Cache-Control", "no-store"),
                ("Content-Security-Policy", Dashboard.contentPolicy), ("X-Content-Type-Options", "nosniff"),
                ("Referrer-Policy", "no-referrer"),
            ], body: Array(html.utf8))
    }

    var html: String {
        """
        <!doctype html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta http-equiv="refresh" content="\(Dashboard.refreshSeconds)">
        <title>\(HTML("Martlet: \(report.readiness.state.rawValue)"))</title>
        <style>\(DashboardStyle.css)</style>
        </head>
        <body>
        \(header)
        <main>
        \(tiles)
        \(checks)
        \(routes)
        <div class="pair">
        \(refusals)
        \(upstreams)
        </div>
        <div class="pair">
        \(providers)
        \(store)
        </div>
        <div class="pair">
        \(wire)
        \(certificates)
        </div>
        <div class="pair">
        \(loops)
        \(process)
        </div>
        </main>
        <footer>Refreshed every \(Dashboard.refreshSeconds) s. Counts are since the start.
        <a href="/metrics">metrics</a> <a href="/readyz">readyz</a> <a href="/livez">livez</a></footer>
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
            <div class="state \(Mood(state).name)">\(state.rawValue)</div>
            </header>
            """
    }

    private var tiles: HTML {
        var all = LatencyHistogram()
        for (_, histogram) in traffic.latency { all.add(histogram) }
        let total = traffic.count()
        let uptime = report.now.seconds - report.startedAt.seconds
        let asked = traffic.tokenHits + traffic.tokenMisses
        return HTML.joined([
            .raw("<section class=\"tiles\">"),
            tile("Uptime", Figures.span(uptime), "version \(report.version)"),
            tile("Requests", Figures.count(total), Figures.rate(total, seconds: uptime)),
            tile(
                "Errors 5xx", Figures.count(traffic.count(class: 5)),
                "\(Figures.share(traffic.count(class: 5), of: total)) of all"),
            tile("Latency p50", Figures.latency(all.quantile(0.5)), "p95 \(Figures.latency(all.quantile(0.95)))"),
            tile("Latency p99", Figures.latency(all.quantile(0.99)), "all routes"),
            tile("Connections", Figures.count(traffic.openConnections), "\(traffic.openExchanges) under way"),
            tile("Tokens", Figures.count(traffic.tokenEntries), "\(Figures.share(traffic.tokenHits, of: asked)) hits"),
            tile("Memory", report.process.residentBytes.map(Figures.bytes) ?? "–", "resident"),
            .raw("</section>"),
        ])
    }

    private func tile(_ title: String, _ value: String, _ note: String) -> HTML {
        "<div class=\"tile\"><h2>\(title)</h2><strong>\(value)</strong><small>\(note)</small></div>"
    }

    private var checks: HTML {
        let rows = report.readiness.checks.map { check -> HTML in
            """
            <tr><th scope="row">\(check.name)</th><td>\(badge(check.state, check.isWell ? .good : .bad))</td>\
            <td class="wide">\(check.detail)</td></tr>
            """
        }
        return table("Checks", ["Dependency", "State", "Detail"], rows, empty: "Nothing outside is needed.")
    }

    private func title(of route: String) -> String {
        if route == "-" { return "– (no route)" }
        return report.routes.contains(route) || report.ownRoutes.contains(route) ? route : "\(route) (gone)"
    }

    private var routes: HTML {
        let retired = Set(traffic.requests.map(\.key.route)).subtracting(report.routes).sorted()
        let rows = (report.routes + retired).map { route -> HTML in
            let histogram = traffic.latency[route]
            let title = title(of: route)
            let figures = HTML.joined(
                (2...5).map { digit in
                    let count = traffic.count(route: route, class: digit)
                    return "<td class=\"n \(digit >= 4 && count > 0 ? "c\(digit)" : "")\">\(Figures.count(count))</td>"
                })
            let times = HTML.joined(
                [0.5, 0.95, 0.99].map { "<td class=\"n\">\(Figures.latency(histogram?.quantile($0)))</td>" })
            return """
                <tr><th scope="row">\(title)</th><td class="n">\(Figures.count(traffic.count(route: route)))</td>\(figures)\(times)\
                <td class="wide">\(statuses(of: route))</td></tr>
                """
        }
        let columns = ["Route", "#Requests", "#2xx", "#3xx", "#4xx", "#5xx", "#p50", "#p95", "#p99", "Statuses"]
        return table("Routes", columns, rows, empty: "There are no routes.")
    }

    private func statuses(of route: String) -> String {
        traffic.requests.filter { $0.key.route == route }.sorted { $0.key.status < $1.key.status }
            .map { "\($0.key.status)\u{00D7}\($0.value)" }.joined(
                separator: " · ")
    }

    private var refusals: HTML {
        let most = traffic.refusals.map(\.count).max() ?? 1
        let rows = traffic.refusals.map { reason, count -> HTML in
            """
            <tr><th scope="row">\(reason)</th><td class="n">\(Figures.count(count))</td>\
            <td class="wide"><div class="bar" style="width:\(String(count * 100 / max(most, 1)))%"></div></td></tr>
            """
        }
        return table("Refusals", ["Reason", "#Count", ""], rows, empty: "None so far.")
    }

    private var upstreams: HTML {
        let loops = report.loops.count
        let rows = traffic.endpoints.map { place, endpoint -> HTML in
            let isOut = endpoint.ejectingLoops > 0
            let mood: Mood =
                isOut ? (endpoint.ejectingLoops == loops ? .bad : .fair) : endpoint.failures > 0 ? .fair : .good
            let word = isOut ? "left out" : endpoint.failures > 0 ? "failing" : "ready"
            let note = isOut ? " by \(endpoint.ejectingLoops) of \(loops) loops" : ""
            return """
                <tr><th scope="row">\(place.upstream)</th><td>\(place.endpoint)</td><td>\(badge(word, mood))\(note)</td>\
                <td class="n">\(String(endpoint.active))</td><td class="n">\(String(endpoint.idle))</td>\
                <td class="n">\(String(endpoint.failures))</td></tr>
                """
        }
        return table(
            "Upstreams", ["Upstream", "Endpoint", "State", "#Active", "#Idle", "#Failures"], rows,
            empty: "There are no upstreams.")
    }

    private var providers: HTML {
        let rows = report.providers.map { provider -> HTML in
            let gauges = (provider.health?.gauges ?? []).map { "\($0.name) \(MetricsWriter.number($0.value))" }
            let state = provider.health?.state
            let sign = state.map { badge($0.rawValue, $0 == .ready ? .good : $0 == .degraded ? .fair : .bad) } ?? "–"
            return """
                <tr><th scope="row">\(provider.name)</th><td>\(provider.kind)</td><td>\(sign)</td>\
                <td class="wide">\(provider.health?.detail ?? "")<br><small>\(gauges.joined(separator: " · "))</small></td></tr>
                """
        }
        return table("Providers", ["Provider", "Kind", "State", "Keys"], rows, empty: "There are no providers.")
    }

    private var store: HTML {
        switch report.store {
        case .memory:
            return table(
                "Store", ["Kind", "State"], ["<tr><th scope=\"row\">memory</th><td>\(badge("ready", .good))</td></tr>"],
                empty: "")
        case .redis(let status):
            let isConnected = status.state == .connected
            let since = Figures.span(report.monotonicNow.since(status.since).wholeSeconds)
            let latency = status.lastLatency.map { Double($0.wholeNanoseconds) / 1000 }
            let failures = status.failures.sorted { $0.key.rawValue < $1.key.rawValue }
                .map { "\($0.key.rawValue) \($0.value)" }.joined(separator: ", ")
            return list(
                "Store",
                [
                    ("Redis", "\(badge(status.state.rawValue, isConnected ? .good : .bad)) for \(since)"),
                    ("Last error", "\(status.lastError?.description ?? "none")"),
                    ("Reconnects", "\(Figures.count(status.reconnects))"),
                    ("Commands", "\(Figures.count(status.commands))"),
                    ("Failures", "\(failures.isEmpty ? "none" : failures)"),
                    ("Last latency", "\(Figures.latency(latency))"),
                ])
        }
    }

    private var wire: HTML {
        let handshakes = traffic.handshakes
        let failures = handshakes.failures.map { "\($0.outcome) \(Figures.count($0.count))" }
        let versions = handshakes.versions.map { "\($0.version) \(Figures.count($0.count))" }
        let refusals = traffic.proxyHeaderRefusals.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
        let ends = traffic.tunnelEnds.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
        return list(
            "Wire",
            [
                ("TLS handshakes", "\(versions.isEmpty ? "none" : versions.joined(separator: ", "))"),
                (
                    "Resumed",
                    "\(Figures.count(handshakes.resumed)), \(Figures.share(handshakes.resumed, of: handshakes.succeeded))"
                ),
                ("Failed", "\(failures.isEmpty ? "none" : failures.joined(separator: ", "))"),
                (
                    "HTTP/2 connections",
                    """
                    \(Figures.count(traffic.openHTTP2Connections)) open of \(Figures.count(traffic.http2Connections)), \
                    \(Figures.count(traffic.http2Refusals)) ended for what they sent
                    """
                ),
                (
                    "HTTP/2 streams",
                    """
                    \(Figures.count(traffic.openStreams)) open of \(Figures.count(traffic.http2Streams)), \
                    \(Figures.count(traffic.http2Resets)) taken back
                    """
                ),
                (
                    "Upgrades",
                    """
                    \(Figures.count(traffic.openTunnels)) open of \(Figures.count(traffic.openedTunnels)), \
                    \(Figures.count(traffic.refusedUpgrades)) refused
                    """
                ),
                ("Upgrades ended", "\(ends.isEmpty ? "none" : ends.joined(separator: ", "))"),
                ("No PROXY header", "\(refusals.isEmpty ? "none" : refusals.joined(separator: ", "))"),
            ])
    }

    private var certificates: HTML {
        let rows = report.certificates.map { shown -> HTML in
            let left = shown.secondsLeft(at: report.now)
            let mood: Mood =
                shown.problem(at: report.now) != nil ? .bad : left < Dashboard.certificateWarning ? .fair : .good
            let word = mood == .bad ? "not valid" : mood == .fair ? "expires soon" : "valid"
            let days = left / 86_400
            return """
                <tr><th scope="row">\(shown.place)</th><td>\(shown.side)</td><td>\(badge(word, mood))</td>\
                <td class="n">\(String(days))</td><td class="wide">\(shown.file)</td></tr>
                """
        }
        return table(
            "Certificates", ["Where", "Side", "State", "#Days left", "File"], rows, empty: "There are no certificates.")
    }

    private var loops: HTML {
        let rows = report.loops.map { loop -> HTML in
            let requests = loop.requests.reduce(0) { $0 + $1.count }
            return """
                <tr><th scope="row">\(String(loop.loop))</th><td class="n">\(Figures.count(requests))</td>\
                <td class="n">\(Figures.count(loop.openConnections))</td><td class="n">\(Figures.count(loop.openExchanges))</td>\
                <td class="n">\(Figures.count(loop.acceptedConnections))</td>\
                <td class="n">\(Figures.count(loop.refusedConnections))</td><td class="n">\(Figures.count(loop.tokenEntries))</td></tr>
                """
        }
        let silent = report.loops.count - report.answeringLoops
        let title = silent > 0 ? "Loops (\(silent) not answering)" : "Loops"
        let columns = ["Loop", "#Requests", "#Open", "#Under way", "#Accepted", "#Refused", "#Tokens"]
        return table(title, columns, rows, empty: "No loop has told yet.")
    }

    private var process: HTML {
        let process = report.process
        let reloads = report.reloads
        let descriptors =
            "\(process.openDescriptors.map(Figures.count) ?? "–") of \(process.descriptorLimit.map(Figures.count) ?? "–")"
        return list(
            "Process",
            [
                ("Version", "\(report.version)"),
                ("Started", "\(HTTPDateText.text(report.startedAt))"),
                (
                    "Configuration",
                    """
                    \(badge(reloads.isLastInForce ? "in force" : "last reload refused", reloads.isLastInForce ? .good : .bad)) \
                    since \(HTTPDateText.text(reloads.loadedAt))
                    """
                ),
                ("Reloads", "\(Figures.count(reloads.succeeded)) taken over, \(Figures.count(reloads.failed)) refused"),
                ("Processor time", "\(process.processorSeconds.map { Figures.span(Int64($0)) } ?? "–")"),
                ("Threads", "\(process.threads.map(Figures.count) ?? "–")"),
                ("Open files", "\(descriptors)"),
                ("Log batches dropped", "\(Figures.count(report.droppedLogBatches))"),
            ])
    }

    // MARK: Pieces

    private func badge(_ word: String, _ mood: Mood) -> HTML { "<span class=\"badge \(mood.name)\">\(word)</span>" }

    /// A table; a column whose title begins with `#` holds numbers.
    private func table(_ title: String, _ columns: [String], _ rows: [HTML], empty: String) -> HTML {
        guard !rows.isEmpty else { return "<section><h2>\(title)</h2><p class=\"empty\">\(empty)</p></section>" }
        let heads = columns.map { column -> HTML in
            let isNumber = column.hasPrefix("#")
            return
                "<th scope=\"col\"\(isNumber ? .raw(" class=\"n\"") : "")>\(isNumber ? String(column.dropFirst()) : column)</th>"
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

/// How good a state is; never told by colour alone.
private enum Mood {
    case good, fair, bad

    init(_ state: Readiness.State) {
        self =
            switch state {
            case .ready: .good
            case .degraded, .draining: .fair
            case .unavailable: .bad
            }
    }

    var name: String {
        switch self {
        case .good: "good"
        case .fair: "fair"
        case .bad: "bad"
        }
    }
}
