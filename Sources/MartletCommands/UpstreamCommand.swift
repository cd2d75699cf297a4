internal import MartletConfig
internal import MartletCore
internal import MartletJSON
internal import MartletProvider
internal import MartletServer

/// `martlet upstream list|drain|restore`: the state of the running gateway's endpoints, and taking one out of use and
/// back.
struct UpstreamCommand {
    private static let timeout = Duration.seconds(10)

    private enum Action: String, CaseIterable { case list, drain, restore }

    private let action: Action
    private let upstream: String
    private let endpoint: String
    private let printsJSON: Bool
    private let admin: AdminAddress

    /// The options of its arguments.
    static func options(_ arguments: [String]) throws(Options.UsageError) -> Options {
        try Options(arguments, allowing: AdminAddress.options, flags: ["json"], words: 3)
    }

    /// - Throws: `UsageError` unless there is an action with its words.
    init(_ options: Options, _ registry: ProviderRegistry) throws(Options.UsageError) {
        guard let word = options.words.first, let action = Action(rawValue: word) else {
            let hint = Suggestion.phrase(for: options.words.first ?? "", among: Action.allCases.map(\.rawValue))
            throw Options.UsageError(message: "expected one of list, drain, restore\(hint)")
        }
        self.action = action
        guard options.words.count == (action == .list ? 1 : 3) else {
            throw Options.UsageError(
                message: action == .list ? "list takes no names" : "expected \(word) NAME URL")
        }
        (upstream, endpoint) = action == .list ? ("", "") : (options.words[1], options.words[2])
        printsJSON = options.has("json")
        admin = AdminAddress(options, registry)
    }

    func run() -> ExitCode {
        do throws(StartError) {
            let client = AdminClient(try admin.target(), timeout: UpstreamCommand.timeout)
            guard action == .list else { return report(try change(client)) }
            return list(try client.request("/upstreams"))
        } catch {
            Output.error("martlet upstream: \(error)\n")
            return error.exit
        }
    }

    private func change(_ client: AdminClient) throws(StartError) -> AdminClient.Response {
        // No other name is configured, and none may change the target of the request.
        guard EntityName.validationError(in: upstream) == nil else {
            throw StartError(
                code: "upstream.bad_name", message: "'\(upstream)' is not the name of an upstream", exit: .usage)
        }
        return try client.request(
            "/upstreams/\(upstream)/\(action.rawValue)", method: "POST",
            json: JSON.write(JSONObject([("endpoint", .string(endpoint))])))
    }

    private func report(_ response: AdminClient.Response) -> ExitCode {
        let document = Self.document(response)
        if response.status == 200 {
            printsJSON
                ? Output.line(String(decoding: response.body, as: UTF8.self).trimmingNewline)
                : Output.line(action == .drain ? "drained" : "restored")
            return .ok
        }
        let detail = document?["detail"]?.string ?? document?["code"]?.string ?? "not a response of a gateway"
        Output.error("martlet upstream: status \(response.status): \(detail)\n")
        return .unavailable
    }

    private func list(_ response: AdminClient.Response) -> ExitCode {
        guard response.status == 200, let upstreams = Self.document(response)?["upstreams"]?.array else {
            return report(response)
        }
        if printsJSON {
            Output.line(String(decoding: response.body, as: UTF8.self).trimmingNewline)
            return .ok
        }
        for upstream in upstreams {
            let name = upstream.object?["name"]?.string ?? ""
            for endpoint in upstream.object?["endpoints"]?.array ?? [] {
                guard let endpoint = endpoint.object else { continue }
                let address = endpoint["address"]?.string.map { " (\($0))" } ?? ""
                let reason = endpoint["reason"]?.string.flatMap { $0.isEmpty ? nil : "  \($0)" } ?? ""
                Output.line(
                    "\(name)  \(endpoint["endpoint"]?.string ?? "")\(address)  \(endpoint["state"]?.string ?? "")\(reason)"
                )
            }
        }
        return .ok
    }

    private static func document(_ response: AdminClient.Response) -> JSONObject? {
        let limits = JSONLimits(maximumDepth: 6, maximumBytes: max(response.body.count, 1))
        return (try? JSON.parse(response.body, limits: limits))?.object
    }
}

extension String {
    /// Without a newline at the end.
    fileprivate var trimmingNewline: String { hasSuffix("\n") ? String(dropLast()) : self }
}
