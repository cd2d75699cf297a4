extension CompletionTree {
    var zsh: String {
        """
        #compdef martlet
        # zsh completion for martlet, printed by 'martlet completion zsh'

        \(nodes.map(zshFunction).joined(separator: "\n"))
        if [[ $funcstack[1] == _martlet ]]; then
            _martlet "$@"
        else
            compdef _martlet martlet
        fi

        """
    }

    private func zshName(_ path: String) -> String {
        path.isEmpty ? "_martlet" : "_martlet_" + path.replacing(" ", with: "_")
    }

    private func zshFunction(_ node: Node) -> String {
        let options = node.options.flatMap(zshOptions)
        guard !node.subcommands.isEmpty else {
            let specifications = (options + node.arguments.map(zshArgument)).map { "        \($0)" }
            return "\(zshName(node.path))() {\n    _arguments -s -S \\\n"
                + specifications.joined(separator: " \\\n") + "\n}\n"
        }
        let list = node.subcommands.map {
            "            \(zshQuoted(zshEscaped($0.name) + ":" + zshEscaped($0.summary)))"
        }
        let calls = node.subcommands.map { name, _ in
            "        \(name)) \(zshName(node.path.isEmpty ? name : "\(node.path) \(name)")) ;;"
        }
        let specifications = options + ["'1:command:->command'", "'*::argument:->argument'"]
        return """
            \(zshName(node.path))() {
                local curcontext="$curcontext" context state state_descr line
                local -a commands
                typeset -A opt_args
                _arguments -C -S \\
            \(specifications.map { "        \($0)" }.joined(separator: " \\\n"))
                case $state in
                command)
                    commands=(
            \(list.joined(separator: "\n"))
                    )
                    _describe -t commands command commands ;;
                argument)
                    case $words[1] in
            \(calls.joined(separator: "\n"))
                    esac ;;
                esac
            }

            """
    }

    private func zshOptions(_ option: CommandOption) -> [String] {
        let excluded = option.names.count > 1 ? "(\(option.names.joined(separator: " ")))" : ""
        let start = option.isRepeatable ? "*" : excluded
        let summary = "[\(zshEscaped(option.summary))]"
        return option.names.map { name in
            guard let placeholder = option.placeholder else { return zshQuoted("\(start)\(name)\(summary)") }
            let separator = name.hasPrefix("--") ? "=" : ""
            return zshQuoted(
                "\(start)\(name)\(separator)\(summary):\(zshEscaped(placeholder)):\(zshAction(option.kind))")
        }
    }

    private func zshArgument(_ argument: CommandArgument) -> String {
        let count = argument.maximumCount > 1 ? "*" : ""
        let optional = argument.minimumCount == 0 ? ":" : ""
        return zshQuoted(
            "\(count)\(count.isEmpty ? optional : ""):\(zshEscaped(argument.placeholder)):\(zshAction(argument.kind))")
    }

    private func zshAction(_ kind: ValueKind) -> String {
        if let choices = kind.choices { return "(\(choices.joined(separator: " ")))" }
        return switch kind {
        case .file: "_files"
        case .folder: "_files -/"
        default: " "
        }
    }

    private func zshEscaped(_ text: String) -> String {
        var result = ""
        for character in text {
            if "\\[]:".contains(character) { result += "\\" }
            result.append(character)
        }
        return result
    }

    private func zshQuoted(_ text: String) -> String { "'" + text.replacing("'", with: "'\\''") + "'" }
}
