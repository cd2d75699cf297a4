import Foundation
import MartletProvider
import MartletServer
import Testing

@testable import MartletCommands

/// A page with the words below its program.
private func pages(_ page: HelpPage) -> [HelpPage] { [page] + page.subpages.flatMap(pages) }

/// Every command and subcommand.
private let allPages = Program.commands.flatMap { pages(HelpPage($0.grammar)) }

/// Every command that has arguments of its own.
private let leaves = allPages.filter { $0.grammar.subcommands.isEmpty }

/// A value that is one of its kind.
private func sample(_ kind: ValueKind) -> String {
    if case .choice(let choices) = kind { return choices[0] }
    return "x"
}

/// Arguments with everything that is required, without the program's and the command's name.
private func minimum(_ page: HelpPage) -> [String] {
    let grammar = page.grammar
    let required = grammar.options.filter(\.isRequired).map(\.name)
    let chosen = grammar.alternatives.filter(\.isRequired).map { $0.names[0] }
    let options = grammar.options.filter { (required + chosen).contains($0.name) }
    return page.path.dropFirst(2) + grammar.arguments.filter { $0.minimumCount > 0 }.map { sample($0.kind) }
        + options.flatMap { ["--\($0.name)", sample($0.kind)] }
}

private func root(_ page: HelpPage) -> CommandGrammar {
    Program.commands.first { $0.grammar.name == page.path[1] }?.grammar ?? page.grammar
}

private func accepts(_ arguments: [String], _ page: HelpPage) -> Bool {
    do {
        _ = try Options(arguments, root(page))
        return true
    } catch {
        return false
    }
}

@Suite struct `The grammar of the commands` {
    @Test func `has each name once, and a summary and examples for each command`() {
        #expect(Set(Program.commands.map { $0.grammar.name }).count == Program.commands.count)
        for page in allPages {
            let grammar = page.grammar
            #expect(!grammar.summary.isEmpty && !grammar.summary.hasSuffix("."), "\(page.name)")
            #expect(Set(grammar.subcommands.map(\.name)).count == grammar.subcommands.count, "\(page.name)")
            #expect(Set(grammar.options.map(\.name)).count == grammar.options.count, "\(page.name)")
            for option in grammar.options {
                #expect(!option.summary.isEmpty && !option.summary.hasSuffix("."), "\(page.name) --\(option.name)")
            }
            for name in grammar.alternatives.flatMap(\.names) {
                #expect(grammar.options.contains { $0.name == name }, "\(page.name) --\(name)")
            }
        }
        for command in Program.commands { #expect(!command.grammar.examples.isEmpty, "\(command.grammar.name)") }
        for page in leaves { #expect(!page.examples.isEmpty, "\(page.name)") }
        for page in allPages where !page.grammar.subcommands.isEmpty {
            let own = Set(page.exitRows.map(\.code.rawValue))
            let below = Set(page.subpages.flatMap(\.exitRows).map(\.code.rawValue))
            #expect(below.isSubset(of: own), "\(page.name): \(below.subtracting(own))")
        }
    }

    @Test func `is what the parser accepts`() {
        for page in leaves {
            let few = minimum(page)
            #expect(accepts(few, page), "\(page.name): \(few)")
            for option in page.grammar.options where !few.contains("--\(option.name)") {
                let isExcluded = page.grammar.alternatives.contains { group in
                    group.names.contains(option.name) && group.names.contains { few.contains("--\($0)") }
                }
                let argument = option.placeholder == nil ? [] : [sample(option.kind)]
                let more = few + ["--\(option.name)"] + argument
                #expect(accepts(more, page) != isExcluded, "\(page.name) --\(option.name)")
                #expect(
                    accepts(more + ["--\(option.name)"] + argument, page)
                        == (option.isRepeatable || option.placeholder == nil)
                        || isExcluded, "\(page.name) --\(option.name) twice")
                if !argument.isEmpty { #expect(!accepts(few + ["--\(option.name)"], page), "--\(option.name) alone") }
            }
        }
    }

    @Test func `is all that the parser accepts`() {
        for page in leaves {
            let few = minimum(page)
            let own = Set(page.grammar.options.map(\.name))
            let all = Set(allPages.flatMap(\.grammar.options).map(\.name) + ["nonsense"])
            for name in all.subtracting(own) {
                #expect(
                    !accepts(few + ["--\(name)"], page) && !accepts(few + ["--\(name)", "x"], page),
                    "\(page.name) --\(name)")
            }
            let tooMany = few + Array(repeating: "x", count: page.grammar.maximumWords + 1)
            #expect(!accepts(tooMany, page), "\(page.name)")
            if !few.isEmpty { #expect(!accepts(Array(few.dropLast()), page), "\(page.name)") }
        }
    }

    @Test func `has examples that it accepts`() {
        for page in allPages {
            for example in page.grammar.examples {
                var words = example.line.prefix { !"|>".contains($0) }.split(separator: " ").map(String.init)
                if words.first == "source" { words = ["martlet", "completion", "bash"] }
                #expect(words.first == "martlet", "\(example.line)")
                let command = Program.commands.first { words.count > 1 && $0.grammar.name == words[1] }
                let grammar = command?.grammar
                #expect(grammar?.name == page.path[1], "\(example.line)")
                if let grammar { #expect(throws: Never.self) { try Options(Array(words.dropFirst(2)), grammar) } }
            }
        }
    }

    @Test func `names the options of other subcommands`() {
        func message(_ words: String..., of command: any Command.Type) -> String? {
            do {
                _ = try Options(words, command.grammar)
                return nil
            } catch { return error.message }
        }
        #expect(message("add", "ada", "--limit", "3", of: UserCommand.self) == "--limit is for list alone")
        #expect(message("list", "ada", of: UserCommand.self) == "list takes no arguments")
        #expect(message("add", of: UserCommand.self) == "add requires NAME: the user's name")
        #expect(message("lst", of: EventsCommand.self) == "expected list or resend (did you mean 'list'?)")
        #expect(message(of: ExplainCommand.self) == "one of --path, --url, --login is required")
        #expect(message("--path", "/", "--url", "x", of: ExplainCommand.self) == "--url cannot be combined with --path")
        #expect(message("create", of: KeyCommand.self) == "--subject is required")
        #expect(message("--format", "xml", of: CheckCommand.self) == "--format must be text or json")
        #expect(message("migrate", "export", of: MigrateCommand.self) == "--to is required")
        #expect(message("--config", "a", "add", "ada", of: UserCommand.self) == nil)
    }

    @Test func `fits on a terminal`() {
        let texts = allPages.map(\.text) + [HelpCommand.overview]
        for text in texts {
            for line in text.split(separator: "\n") where line.count > 80 {
                // A word that is longer, or an example, cannot be broken.
                #expect(line.hasPrefix("  martlet ") || line.contains("postgresql://"), "\(line)")
            }
        }
        #expect(
            HelpPage(UserCommand.grammar).page(for: ["add"]).text
                .hasPrefix("usage: martlet user add NAME [--verified] [--json] "))
        let explain = HelpPage(ExplainCommand.grammar).text
        #expect(
            explain.hasPrefix("usage: martlet explain (--path PATH | --url URL | --login PROVIDER)\n"), "\(explain)")
    }

    @Test func `keeps what is for the program itself out of lists`() {
        #expect(!HelpPage(PluginCommand.grammar).text.contains("probe"))
        #expect(throws: Never.self) { try Options(["probe", "a.so", "--report", "3"], PluginCommand.grammar) }
        for shell in CompletionCommand.Shell.allCases {
            #expect(!CompletionCommand.script(shell).contains("probe"), "\(shell)")
        }
    }

    @Test func `is in every completion script and manual page`() {
        for shell in CompletionCommand.Shell.allCases {
            let script = CompletionCommand.script(shell)
            for page in allPages { #expect(script.contains(page.path.last ?? ""), "\(shell): \(page.name)") }
            for option in allPages.flatMap(\.grammar.options) {
                #expect(script.contains(shell == .fish ? "-l \(option.name)" : "--\(option.name)"), "\(option.name)")
            }
        }
        let manual = ManCommand.commandPage("2026-01-31")
        for option in allPages.flatMap(\.grammar.options) {
            #expect(manual.contains("\\fB\\-\\-\(option.name.replacing("-", with: "\\-"))\\fR"), "\(option.name)")
        }
    }

    @Test func `chooses a configuration`() {
        func choose(_ option: String?, _ variable: String?, _ files: [String]) -> String {
            ConfigurationPath.choose(
                option, environment: { $0 == "MARTLET_CONFIG" ? variable : nil }, exists: files.contains)
        }
        let system = ConfigurationPath.system
        #expect(choose("a", "b", ["config.yaml", system]) == "a")
        #expect(choose(nil, "b", ["config.yaml", system]) == "b")
        #expect(choose(nil, "", ["config.yaml", system]) == "config.yaml")
        #expect(choose(nil, nil, [system]) == system)
        #expect(choose(nil, nil, []) == "config.yaml")
    }

    @Test func `takes the file of check and run without its option`() throws {
        func path(_ arguments: String..., of command: any Command.Type) throws(Options.UsageError) -> String {
            try ConfigurationPath.ofArgument(Options(arguments, command.grammar))
        }
        for command in [CheckCommand.self, RunCommand.self] as [any Command.Type] {
            #expect(try path("a.yaml", of: command) == "a.yaml")
            #expect(try path("-c", "a.yaml", of: command) == "a.yaml")
            #expect(throws: Options.UsageError.self) { try path("a.yaml", "--config", "b.yaml", of: command) }
            #expect(throws: Options.UsageError.self) { try path("a.yaml", "b.yaml", of: command) }
        }
    }

    @Test func `has a short form of --config in every command that has it`() throws {
        for page in leaves {
            guard page.grammar.options.contains(where: { $0.name == "config" }) else { continue }
            let few = minimum(page)
            #expect(try Options(few + ["-c", "a.yaml"], root(page))["config"] == "a.yaml", "\(page.name)")
            #expect(!accepts(few + ["-c"], page) && !accepts(few + ["-c", "a", "--config", "b"], page), "\(page.name)")
            #expect(page.text.contains("\n  -c, --config FILE"), "\(page.name)")
        }
        #expect(try Options(["add", "--", "-c"], UserCommand.grammar)["config"] == nil)
        #expect(ManCommand.commandPage("2026-01-31").contains("\n\\fB\\-c\\fR, \\fB\\-\\-config\\fR \\fIFILE\\fR\n"))
    }
}
