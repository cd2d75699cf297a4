internal import MartletServer

/// Arguments as they were spelled one version ago, for scripts that still do.
struct FormerSpelling {
    /// The options of both that have a value.
    private static let valued: Set<String> = [
        "--config", "-c", "--admin", "--address", "--token-file", "--subject",
    ]

    let note: String
    let arguments: [String]
    /// The exit code for what does not exist.
    let unknown = ExitCode.rejected

    /// - Returns: `nil` for a command that is called the same.
    init?(_ arguments: [String]) {
        guard let first = arguments.first, first == "sessions" || first == "subject" else { return nil }
        var (words, options): ([String], [String]) = ([], [])
        let (name, current): (String, String)
        var rest = arguments.dropFirst()
        while let argument = rest.popFirst() {
            guard argument.hasPrefix("-") else {
                words.append(argument)
                continue
            }
            options.append(argument)
            if Self.valued.contains(argument), let value = rest.popFirst() { options.append(value) }
        }
        if first == "subject" {
            let named = words.first.flatMap { ["show", "disable", "enable", "delete"].contains($0) ? $0 : nil }
            if named != nil { words.removeFirst() }
            name = named.map { "subject \($0)" } ?? "subject"
            current = "account \(named ?? "show") SUBJECT"
            self.arguments = ["account", named ?? "show"] + words + options
        } else if words.first == "end" {
            let all = words.count == 1 ? options.firstIndex(of: "--all") : nil
            if let all { options.remove(at: all) }
            name = "sessions end"
            current = all == nil ? "session end --id ID" : "session end --subject SUBJECT"
            self.arguments = ["session", "end"] + words.dropFirst().flatMap { ["--id", $0] } + options
        } else {
            (name, current) = ("sessions", "session list --subject SUBJECT")
            self.arguments = ["session", "list"] + words.flatMap { ["--subject", $0] } + options
        }
        note = "'\(name)' is '\(current)' now; the old name goes with the next version"
    }
}
