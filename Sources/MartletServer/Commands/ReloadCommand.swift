internal import MartletCore
internal import MartletJSON
internal import MartletProvider

/// `martlet reload`: asks the running gateway to read its configuration again, and waits for what comes of it.
struct ReloadCommand {
    private static let patience = Duration.seconds(15)

    private let place: AdminPlace

    init(_ options: Options, _ registry: ProviderRegistry) {
        place = AdminPlace(
            path: options["config"] ?? "config.yaml", address: options["address"], registry: registry)
    }

    func run() -> ExitCode {
        do throws(StartError) {
            let endpoint = try place.endpoint()
            let answer = try AdminQuestion(endpoint, patience: ReloadCommand.patience).ask("/reload", method: "POST")
            return ReloadCommand.tell(answer)
        } catch {
            Output.error("martlet reload: \(error)\n")
            return error.exit
        }
    }

    private static func tell(_ answer: AdminQuestion.Answer) -> ExitCode {
        let limits = JSONLimits(maximumDepth: 4, maximumBytes: answer.body.count)
        let document = (try? JSON.parse(answer.body, limits: limits))?.object
        for diagnostic in document?["diagnostics"]?.array ?? [] {
            if let text = diagnostic.string { Output.error("\(text)\n") }
        }
        switch (answer.status, document?["status"]?.string, document?["code"]?.string) {
        case (200, "reloaded", _):
            Output.line("reloaded")
            return .ok
        case (422, _, "configuration_refused"):
            Output.error("martlet reload: the configuration was not reloaded; the running one stays\n")
            return .configuration
        case (_, _, let code):
            Output.error("martlet reload: not reloaded: status \(answer.status), \(code ?? "no answer of a gateway")\n")
            return .unavailable
        }
    }
}
