internal import CCurl
package import MartletCore
package import MartletFetch

/// Where spans are sent.
package struct ExportTarget: Sendable {
    package let url: String
    /// Further fields of the requests; they may have secrets.
    package let fields: [(name: String, value: Secret)]
    package let route: OutboundRoute
    /// For a whole request.
    package var timeout = Duration.seconds(10)

    package init(url: String, fields: [(name: String, value: Secret)] = [], route: OutboundRoute = OutboundRoute()) {
        (self.url, self.fields, self.route) = (url, fields, route)
    }
}

/// A document on its way.
struct ExportTransfer: Transfer {
    let document: [UInt8]
    let target: ExportTarget
    /// Called once, unless the thread ends before.
    let onEnd: @Sendable (ExportResult) -> Void

    func end(_ result: CURLcode, of handle: EasyHandle) { onEnd(outcome(result, of: handle)) }

    func fail(_ error: HTTPCallError) {
        if error.code != .fetchStopped { onEnd(.rejected(error.message)) }
    }

    /// What the collector said.
    private func outcome(_ result: CURLcode, of handle: EasyHandle) -> ExportResult {
        let response = handle.response
        if response.isHeadTooLarge || response.isBodyTooLarge {
            return .rejected("the response is larger than 64 KiB")
        }
        guard result == CURLE_OK else { return .unavailable(result.reason.lowercased(), after: nil) }
        return ExportResult(
            status: handle.status, body: response.body, retryAfter: handle.retryAfter(atMost: .seconds(3600)))
    }

    func makeHandle() throws(HTTPCallError) -> EasyHandle {
        let handle = try EasyHandle(timeout: target.timeout, response: ResponseIntake(bodyLimit: 64 * 1024))
        let isSecure = target.url.hasPrefix("https:")
        try target.route.apply(to: handle, url: target.url, isSecure: isSecure, userAgent: "martlet")
        try handle.set([
            (CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS)),
            // The end of the process does not wait for a name server.
            (CURLOPT_QUICK_EXIT, 1),
        ])
        let fields = target.fields.map { name, value in
            "\(name): \(value.withBytes { String(decoding: $0, as: UTF8.self) })"
        }
        try handle.set(CURLOPT_HTTPHEADER, lines: ["Content-Type: application/json", "Expect:"] + fields)
        try handle.setBody(document)
        return handle
    }
}
