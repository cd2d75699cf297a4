internal import MartletCore
internal import MartletJSON
internal import MartletServer

/// Requests of a command to the admin listener of the running gateway.
struct AdminRequests {
    /// Longer than the gateway searches a session.
    private static let timeout = Duration.seconds(15)
    /// The gateway requires a proof of who asks, and the command has none.
    static let unproven: ErrorCode = "server.unproven"

    private let client: AdminClient
    private let unknown: StartError?
    private let printsJSON: Bool

    /// - Parameters:
    ///   - unknown: what a 404 of the gateway means; `nil` for what every gateway has.
    ///   - printsJSON: whether documents are printed as they are.
    init(_ target: AdminTarget, unknown: StartError?, printsJSON: Bool) {
        client = AdminClient(target, timeout: Self.timeout)
        self.unknown = unknown
        self.printsJSON = printsJSON
    }

    /// The document of a response.
    /// - Parameter member: one that the gateway's document has.
    /// - Throws: 69 if no gateway responds or it rejects the request, 64 for what it cannot apply.
    func document(
        _ path: String, with member: String, method: String = "GET", json: JSONObject? = nil
    ) throws(StartError) -> JSONObject {
        let response = try send(path, method, json)
        guard let document = response.document?.object, document[member] != nil else { throw rejection(of: response) }
        return document
    }

    func shown(
        _ path: String, with member: String, method: String = "GET", json: JSONObject? = nil
    ) throws(StartError) -> JSONObject? {
        let response = try send(path, method, json)
        guard let document = response.document?.object, document[member] != nil else { throw rejection(of: response) }
        guard printsJSON else { return document }
        Output.line(response.text)
        return nil
    }

    /// The document of what may be unknown; `nil` if it is.
    func find(_ path: String, with member: String) throws(StartError) -> JSONObject? {
        do throws(StartError) {
            return try document(path, with: member)
        } catch {
            guard error.code == unknown?.code else { throw error }
            return nil
        }
    }

    func list(_ path: String) throws(StartError) -> [JSONObject] {
        let response = try send(path, "GET", nil)
        guard let list = response.document?.array else { throw rejection(of: response) }
        return list.compactMap(\.object)
    }

    func delete(_ path: String) throws(StartError) {
        let response = try send(path, "DELETE", nil)
        guard response.status == 204 else { throw rejection(of: response) }
    }

    private func send(_ path: String, _ method: String, _ json: JSONObject?) throws(StartError) -> AdminClient.Response
    {
        let response = try client.request(path, method: method, json: json.map { JSON.write($0) })
        guard response.status != 200, response.status != 204 else { return response }
        throw rejection(of: response)
    }

    private func rejection(of response: AdminClient.Response) -> StartError {
        let problem = response.document?.object
        let code = problem?["code"]?.string
        if response.status == 404, code == "not_found", let unknown { return unknown }
        let detail = problem?["detail"]?.string ?? code ?? "not a response of a gateway"
        return StartError(
            code: code == "local_only" || code == "credential_missing" ? Self.unproven : "server.refused",
            message: "status \(response.status): \(TerminalText.escaped(detail))",
            exit: problem?["errors"] == nil ? .unavailable : .usage)
    }

    /// A text as a part of a path (RFC 3986).
    static func escaped(_ text: String) -> String {
        var escaped = ""
        for byte in text.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E:
                escaped.unicodeScalars.append(.init(byte))
            default: escaped += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
        return escaped
    }

    /// A time of a document, in Unix seconds, as text; `nil` without one.
    static func time(_ value: JSONValue?) -> String? {
        value?.int64.map { InternetTime.text(milliseconds: UnixTime(seconds: $0).milliseconds) }
    }
}

extension AdminAddress {
    /// Requests to the gateway.
    /// - Parameter unknown: what a 404 of the gateway means.
    func requests(unknown: StartError? = nil) throws(StartError) -> AdminRequests {
        AdminRequests(try target(), unknown: unknown, printsJSON: printsJSON)
    }
}

extension AdminClient.Response {
    /// The body as JSON; `nil` if it is something else.
    var document: JSONValue? {
        try? JSON.parse(body, limits: JSONLimits(maximumDepth: 8, maximumBytes: max(body.count, 1)))
    }

    var text: String { String(decoding: body, as: UTF8.self) }
}
