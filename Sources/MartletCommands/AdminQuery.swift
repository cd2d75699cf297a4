internal import MartletCore
internal import MartletJSON
internal import MartletServer

/// One request to the admin listener for a command, and how its response is reported.
struct AdminQuery {
    private static let timeout = Duration.seconds(10)

    private let command: String
    private let client: AdminClient
    private let printsJSON: Bool

    /// - Throws: why there is no listener to ask.
    init(_ command: String, _ admin: AdminAddress, _ options: Options) throws(StartError) {
        self.command = command
        client = AdminClient(try admin.target(), timeout: Self.timeout)
        printsJSON = options.has("json")
    }

    /// The document of a response with 200; its text was printed if JSON is wanted.
    /// - Parameter member: one that the gateway's document has.
    /// - Throws: the rejection of the gateway, as an error with its status and detail.
    func document(
        _ path: String, with member: String, method: String = "GET", json: [UInt8]? = nil
    ) throws(StartError) -> JSONObject {
        let response = try client.request(path, method: method, json: json)
        let found = Self.parsed(response.body)
        guard response.status == 200, let found, found[member] != nil else {
            let detail = found?["detail"]?.string ?? found?["code"]?.string ?? "not a response of a gateway"
            throw StartError(
                code: "server.refused", message: "status \(response.status): \(TerminalText.escaped(detail))",
                exit: .unavailable)
        }
        if printsJSON { Output.line(String(decoding: response.body, as: UTF8.self)) }
        return found
    }

    /// Whether the document is all that is printed.
    var isJSON: Bool { printsJSON }

    private static func parsed(_ body: [UInt8]) -> JSONObject? {
        let limits = JSONLimits(maximumDepth: 8, maximumBytes: max(body.count, 1))
        return (try? JSON.parse(body, limits: limits))?.object
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
}
