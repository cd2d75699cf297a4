extension CompletionTree {
    var fish: String {
        """
        # fish completion for martlet, printed by 'martlet completion fish'

        # Whether the words before the cursor are those of a command, and as many others as its position.
        function __martlet_at
            set -l path
            set -l skips 0
            set -l position 0
            for word in (commandline -opc)[2..-1]
                if test $skips = 1
                    set skips 0
                    continue
                end
                switch "$path $word"
        \(fishCase(paths.map { " \($0)" }))
                        set path "$path $word"
        \(fishCase(valuedOptions.flatMap { fishKeys($0.path, $0.option) }))
                        set skips 1
                    case '* -*'
                    case '*'
                        set position (math $position + 1)
                end
            end
            test "$path" = "$argv[1]"
            and begin
                test (count $argv) = 1
                or test "$position" = "$argv[2]"
            end
        end

        complete -c martlet -e
        complete -c martlet -f
        \(nodes.flatMap(fishLines).joined(separator: "\n"))

        """
    }

    private func fishCase(_ names: [String]) -> String {
        "            case " + names.map(fishQuoted).joined(separator: " \\\n                ")
    }

    private func fishKeys(_ path: String, _ option: CommandOption) -> [String] {
        option.names.map { "\(path.isEmpty ? "" : " \(path)") \($0)" }
    }

    /// - Parameter position: of an argument; `nil` is any.
    private func fishStart(_ node: Node, _ position: Int? = nil) -> String {
        let path = fishQuoted(node.path.isEmpty ? "" : " \(node.path)")
        let condition = "__martlet_at \(path)" + (position.map { " \($0)" } ?? "")
        return "complete -c martlet -n \(fishQuoted(condition))"
    }

    private func fishLines(_ node: Node) -> [String] {
        let start = fishStart(node)
        let commands = node.subcommands.map { "\(start) -a \($0.name) -d \(fishQuoted($0.summary))" }
        let options = node.options.map {
            "\(start)\($0.letter.map { " -s \($0)" } ?? "") -l \($0.name)\(fishValue($0)) -d \(fishQuoted($0.summary))"
        }
        let arguments = node.argumentKinds.compactMap { position, kind -> String? in
            let start = fishStart(node, position)
            if let choices = kind.choices { return "\(start) -a \(fishQuoted(choices.joined(separator: " ")))" }
            return switch kind {
            case .file: "\(start) -F"
            case .folder: "\(start) -a '(__fish_complete_directories)'"
            default: nil
            }
        }
        return commands + options + arguments
    }

    private func fishValue(_ option: CommandOption) -> String {
        guard option.placeholder != nil else { return "" }
        if let choices = option.kind.choices { return " -x -a \(fishQuoted(choices.joined(separator: " ")))" }
        return switch option.kind {
        case .file: " -r -F"
        case .folder: " -x -a '(__fish_complete_directories)'"
        default: " -x"
        }
    }

    private func fishQuoted(_ text: String) -> String {
        "'" + text.replacing("\\", with: "\\\\").replacing("'", with: "\\'") + "'"
    }
}
