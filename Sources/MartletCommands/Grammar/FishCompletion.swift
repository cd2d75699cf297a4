extension CompletionTree {
    /// The script for fish.
    var fish: String {
        """
        # fish completion for martlet, printed by 'martlet completion fish'

        # Whether the words before the cursor are those of a command.
        function __martlet_at
            set -l path
            set -l skips 0
            for word in (commandline -opc)[2..-1]
                if test $skips = 1
                    set skips 0
                    continue
                end
                switch "$path $word"
        \(fishCase(paths.map { " \($0)" }))
                        set path "$path $word"
        \(fishCase(valuedOptions.map { ($0.path.isEmpty ? "" : " \($0.path)") + " --\($0.option.name)" }))
                        set skips 1
                end
            end
            test "$path" = "$argv[1]"
        end

        complete -c martlet -e
        complete -c martlet -f
        \(nodes.flatMap(fishLines).joined(separator: "\n"))

        """
    }

    private func fishCase(_ names: [String]) -> String {
        "            case " + names.map(fishQuoted).joined(separator: " \\\n                ")
    }

    private func fishLines(_ node: Node) -> [String] {
        let start =
            "complete -c martlet -n \(fishQuoted("__martlet_at " + fishQuoted(node.path.isEmpty ? "" : " \(node.path)")))"
        let commands = node.subcommands.map { "\(start) -a \($0.name) -d \(fishQuoted($0.summary))" }
        let options = node.options.map {
            "\(start) -l \($0.name)\(fishValue($0)) -d \(fishQuoted($0.summary))"
        }
        let arguments = node.argumentKinds.prefix(1).compactMap { kind -> String? in
            if let choices = kind.choices(self) { return "\(start) -a \(fishQuoted(choices.joined(separator: " ")))" }
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
        if let choices = option.kind.choices(self) { return " -x -a \(fishQuoted(choices.joined(separator: " ")))" }
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
