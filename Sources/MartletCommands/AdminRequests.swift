internal import MartletCore
internal import MartletJSON
internal import MartletServer

/// The requests of a command about a session or a subject to the admin listener of the running gateway.
struct AdminRequests {
    /// Longer than the gateway searches a session.
    private static let timeout = Duration.seconds(15)

    private let command: String
    private let admin: AdminAddress

    /// - Parameter command: its name, for messages.
    init(_ command: String, _ options: Options, _ program: Program) {
        self.command = command
        admin = AdminAddress(options, program.registry)
    }

    /// Sends a request.
    /// - Throws: 69 if no gateway responds.
    func send(_ path: String, method: String = "GET") throws(StartError) -> AdminClient.Response {
        try AdminClient(try admin.target(), timeout: Self.timeout).request(path, method: method)
    }

    /// Runs a command, and prints its errors.
    func run(_ body: () throws(StartError) -> ExitCode) -> ExitCode {
        do throws(StartError) {
            return try body()
        } catch {
            Output.error("martlet \(command): \(error)\n")
            return error.exit
        }
    }

    /// Reports a response that is not the expected one.
    /// - Parameter what: what a 404 of the gateway means.
    func fail(_ response: AdminClient.Response, unknown what: String) -> ExitCode {
        let document = response.document?.object
        guard response.status != 404 || document?["code"]?.string != "not_found" else {
            Output.error("martlet \(command): \(what)\n")
            return .rejected
        }
        let detail = document?["detail"]?.string ?? document?["code"]?.string ?? "not a response of a gateway"
        Output.error("martlet \(command): status \(response.status): \(TerminalText.escaped(detail))\n")
        return .unavailable
    }

    /// A time of a document, in Unix seconds, as text; `-` without one.
    static func time(_ value: JSONValue?) -> String {
        value?.int64.map { InternetTime.text(milliseconds: UnixTime(seconds: $0).milliseconds) } ?? "-"
    }
}

extension AdminClient.Response {
    /// The body as JSON; `nil` if it is something else.
    var document: JSONValue? {
        try? JSON.parse(body, limits: JSONLimits(maximumDepth: 8, maximumBytes: max(body.count, 1)))
    }

    /// The body as it is printed.
    var text: String { String(decoding: body, as: UTF8.self) }
}
