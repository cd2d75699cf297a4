import Foundation
import MartletTesting
import Testing

/// The completion scripts in the shells that they are for, and the manual pages in the tools that read them.
@Suite struct `Shells and manuals` {
    private static func path(of tool: String) -> String? {
        ["/usr/bin/\(tool)", "/bin/\(tool)"].first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// Runs the rest of a test, or says clearly that it was left out.
    private func with(_ tool: String, _ body: (String) throws -> Void) throws {
        guard let path = Self.path(of: tool) else {
            return print("Shells and manuals: SKIPPED: \(tool) is missing; .tools/deps test installs it")
        }
        try body(path)
    }

    private func folder() throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        _ = try folder.write("", to: "gateway.yaml")
        for shell in ["bash", "zsh", "fish"] {
            let script = try run(try Executable.martlet(), ["completion", shell])
            #expect(script.ending == .exited(0) && script.errorOutput.isEmpty, "\(script)")
            _ = try folder.write(script.output, to: shell == "zsh" ? "_martlet" : "martlet.\(shell)")
        }
        return folder
    }

    /// What is typed, and what it is completed with.
    private static let lines: [(typed: String, words: [String])] = [
        ("martlet che", ["check"]),
        ("martlet user ", ["add", "delete", "disable", "enable", "list", "passwd", "show", "unlock", "verify"]),
        ("martlet user list --lim", ["--limit"]),
        ("martlet check --format ", ["json", "text"]),
        ("martlet check --config gate", ["gateway.yaml"]),
        ("martlet user --provider che ad", ["add"]),
        ("martlet apple migrate import gate", ["gateway.yaml"]),
        ("martlet help comp", ["completion"]),
        ("martlet man martlet.", ["martlet.yaml"]),
        ("martlet health --address gate", []),
        ("martlet account d", ["delete", "disable"]),
        ("martlet account --json en", ["enable"]),
        ("martlet account disable d", []),
        ("martlet session e", ["end"]),
        ("martlet sub", []),
        ("martlet help user un", ["unlock"]),
        ("martlet help user unlock u", []),
        ("martlet check gate", ["gateway.yaml"]),
        ("martlet run -c gate", ["gateway.yaml"]),
        ("martlet user list -c x --lim", ["--limit"]),
        ("martlet audit verify a gate", ["gateway.yaml"]),
    ]

    @Test func `bash completes commands, options, choices and files`() throws {
        try with("bash") { bash in
            let folder = try folder()
            let script = """
                source martlet.bash
                complete -p martlet
                for line in "$@"; do
                    read -ra COMP_WORDS <<<"$line"
                    [[ $line == *' ' ]] && COMP_WORDS+=('')
                    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
                    _martlet
                    printf '%s\\n' "${COMPREPLY[@]}" | sort | paste -sd' '
                done
                """
            let result = try run(
                bash,
                ["-c", "cd '\(folder.path)' && set -u\n\(script)", "bash"] + Self.lines.map(\.typed)
                    + ["martlet check --format = j"])
            #expect(result.ending == .exited(0) && result.errorOutput.isEmpty, "\(result)")
            let replies = result.output.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
            #expect(replies.first == "complete -F _martlet martlet")
            for (line, reply) in zip(Self.lines, replies.dropFirst()) {
                #expect(reply == line.words.joined(separator: " "), "\(line.typed)")
            }
            #expect(replies.dropFirst(Self.lines.count + 1).first == "json")
        }
    }

    @Test func `fish completes the same`() throws {
        try with("fish") { fish in
            let folder = try folder()
            for (typed, words) in Self.lines {
                let result = try run(
                    fish,
                    ["--no-config", "-c", "cd '\(folder.path)'; source martlet.fish; complete -C '\(typed)'"])
                #expect(result.ending == .exited(0), "\(typed): \(result)")
                let replies = result.output.split(separator: "\n").map { String($0.prefix { $0 != "\t" }) }
                #expect(replies.sorted() == words, "\(typed): \(replies)")
            }
        }
    }

    @Test func `zsh completes the same, as it is typed`() throws {
        try with("zsh") { zsh in
            let folder = try folder()
            #expect(try run(zsh, ["-n", "\(folder.path)/_martlet"]).ending == .exited(0))
            // Each line is typed with a tab in a shell of its own on a pseudoterminal; one match is inserted, several are listed.
            let script = """
                zmodload zsh/zpty
                cd '\(folder.path)'
                for line in "$@"; do
                    zpty z zsh -f -i
                    zpty -w z "PROMPT=; fpath=(\\$PWD \\$fpath); autoload -U compinit; compinit -u -D; LISTMAX=0; print -r -- RE''ADY"
                    zpty -r z out '*READY*'
                    zpty -n -w z "$line"$'\\t'
                    seen=
                    for try in {1..50}; do
                        sleep 0.1
                        while zpty -r -t z out; do seen+=$out; done
                        [[ $try -gt 8 && -n $seen && $seen == $last ]] && break
                        last=$seen
                    done
                    zpty -d z
                    print -r -- "${${seen//[^[:print:]]/ }}"
                done
                """
            let result = try run(zsh, ["-f", "-c", script, "zsh"] + Self.lines.map(\.typed), within: .seconds(120))
            let replies = result.output.split(separator: "\n").map(String.init)
            #expect(replies.count == Self.lines.count, "\(result)")
            for (line, reply) in zip(Self.lines, replies) {
                for word in line.words { #expect(reply.contains(word), "\(line.typed): \(reply)") }
                if line.words.isEmpty { #expect(!reply.contains("gateway.yaml"), "\(reply)") }
            }
        }
    }

    @Test(arguments: ["martlet", "martlet.yaml"]) func `manual pages have no errors`(page: String) throws {
        let text = try run(try Executable.martlet(), ["man", page], environment: ["SOURCE_DATE_EPOCH": "86400"])
        #expect(text.ending == .exited(0) && text.output.contains("\"1970-01-02\""), "\(text.output.prefix(200))")
        let folder = try TemporaryFolder()
        let file = try folder.write(text.output, to: page == "martlet" ? "martlet.1" : "martlet.yaml.5")
        try with("mandoc") { mandoc in
            let lint = try run(mandoc, ["-T", "lint", "-W", "style", file])
            #expect(lint.ending == .exited(0) && lint.output.isEmpty && lint.errorOutput.isEmpty, "\(lint)")
        }
        try with("groff") { groff in
            let read = try run(groff, ["-man", "-ww", "-Tutf8", "-z", file])
            #expect(read.ending == .exited(0) && read.errorOutput.isEmpty, "\(read)")
        }
        #expect(try run(try Executable.martlet(), ["man", "other"]).ending == .exited(64))
    }
}
