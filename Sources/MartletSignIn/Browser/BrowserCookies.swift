internal import MartletBrowser
internal import MartletCore
internal import MartletHTTP
internal import MartletResponder

/// The values of the gateway's cookies in a request; empty ones are absent.
struct BrowserCookies: Sendable {
    private(set) var session: Secret?
    private(set) var start: [UInt8]?
    private(set) var form: [UInt8]?

    /// - Throws: 400 for a cookie that is repeated, malformed or too long.
    init(_ request: LocalRequest, _ cookies: GatewayCookies) throws(Failure) {
        let values = request.fields.filter { $0.name.lowercased() == "cookie" }.map(\.value)
        guard !values.isEmpty else { return }
        // As if they were one field (RFC 9113 §8.2.3), so that a cookie in two of them is found.
        let bytes = Array(values.joined(separator: "; ").utf8)
        var found = FoundCookies()
        do throws(BrowserError) {
            try cookies.find(in: bytes.span, ByteRange(from: 0, to: bytes.count), &found)
        } catch {
            throw .browser(error)
        }
        func value(_ kind: GatewayCookies.Kind) -> [UInt8]? {
            found[kind].flatMap { $0.isEmpty ? nil : Array(bytes[$0.start..<$0.end]) }
        }
        session = value(.session).map { Secret($0) }
        start = value(.start)
        form = value(.form)
    }

    /// The cookie that forms are bound to, if it is one of the gateway's.
    var browser: [UInt8]? { form.flatMap { FormTokens.isBrowser($0) ? $0 : nil } }
}
