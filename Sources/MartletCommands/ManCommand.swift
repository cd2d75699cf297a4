private import CLinux
internal import MartletConfig
internal import MartletCore
internal import MartletProvider
internal import MartletServer

/// `martlet man [PAGE]`: a manual page in roff, made from the grammars of the commands and of the configuration.
struct ManCommand: Command {
    private static let pages = ["martlet", "martlet.yaml"]

    private let page: String
    private let program: Program

    init(_ options: Options, _ program: Program) throws(Options.UsageError) {
        page = options.words.first ?? Self.pages[0]
        self.program = program
        guard Self.pages.contains(page) else {
            throw Options.UsageError(message: "there are the pages \(Self.pages.joined(separator: " and "))")
        }
    }

    func run() -> ExitCode {
        Output.line(page == "martlet" ? ManCommand.commandPage(date) : ManCommand.configurationPage(program, date))
        return .ok
    }

    static func commandPage(_ date: String) -> String {
        ManualPage(version: Gateway.version, date: date, commands: Program.commands.map { $0.grammar }).text
    }

    static func configurationPage(_ program: Program, _ date: String) -> String {
        let kinds = program.registry.kinds.map { ($0.rawValue, program.registry.factory(for: $0)?.grammar) }
        return ConfigurationManual(version: Gateway.version, date: date, providers: kinds).text
    }

    /// Today, or the day of `SOURCE_DATE_EPOCH`, so that packages can be built twice with the same result.
    private var date: String {
        let fixed = SystemInformation.environment("SOURCE_DATE_EPOCH").flatMap { Int64($0) }
        let seconds = min(max(fixed ?? Clock.system.unixTime.seconds, 0), 253_402_300_799)
        return String(InternetTime.text(milliseconds: seconds * 1000).prefix(10))
    }

    static let grammar = CommandGrammar("man", "Print a manual page") { grammar in
        grammar.details = "Prints a manual page in roff, for man(1) and for packages. SOURCE_DATE_EPOCH sets its date."
        grammar.arguments = [.optional("PAGE", .choice(pages), "martlet (default) or martlet.yaml")]
        grammar.example("martlet man | man -l -", "reads martlet(1)")
        grammar.example("martlet man martlet.yaml > martlet.yaml.5", "for a package")
        grammar.exits = [.ok: "printed"]
    }
}
