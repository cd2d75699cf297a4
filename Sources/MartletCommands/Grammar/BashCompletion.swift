extension CompletionTree {
    var bash: String {
        """
        # bash completion for martlet, printed by 'martlet completion bash'
        _martlet() {
            local current=${COMP_WORDS[COMP_CWORD]} path='' option='' word commands='' options='' index position=0
            COMPREPLY=()
            [[ $current == '=' ]] && current=''
            for ((index = 1; index < COMP_CWORD; index++)); do
                word=${COMP_WORDS[index]}
                if [[ -n $option ]]; then
                    [[ $word == '=' ]] || option=''
                    continue
                fi
                case "$path $word" in
        \(bashPattern(paths.map { "' \($0)'" }))
                    path+=" $word" ;;
        \(bashPattern(valuedOptions.flatMap { bashKeys($0.path, $0.option) }))
                    option=$word ;;
                *)
                    [[ $word == -* ]] || ((position += 1)) ;;
                esac
            done
            if [[ -n $option ]]; then
                case "$path $option" in
        \(bashValues)
                esac
                return
            fi
            case "$path" in
        \(nodes.map(bashWords).joined(separator: "\n"))
            esac
            if [[ $current == -* ]]; then
                mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
            elif [[ -n $commands ]]; then
                mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$current")
            else
                case "$path $position" in
        \(bashArguments)
                *)
                    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current") ;;
                esac
            fi
        }
        complete -F _martlet martlet

        """
    }

    private func bashKeys(_ path: String, _ option: CommandOption) -> [String] {
        option.names.map { "'\(path.isEmpty ? "" : " \(path)") \($0)'" }
    }

    /// `'a' | 'b')`, a pattern a line.
    private func bashPattern(_ patterns: [String]) -> String {
        "        " + patterns.joined(separator: " | \\\n        ") + ")"
    }

    private func bashWords(_ node: Node) -> String {
        let key = node.path.isEmpty ? "" : " \(node.path)"
        let commands = node.subcommands.map(\.name).joined(separator: " ")
        let options = node.options.flatMap(\.names).joined(separator: " ")
        return "    '\(key)')\n        commands='\(commands)' options='\(options)' ;;"
    }

    /// What completes the values of options, those with the same completion together.
    private var bashValues: String {
        bashCases(
            valuedOptions.flatMap { path, option in bashKeys(path, option).map { ($0, option.kind) } })
    }

    private var bashArguments: String {
        bashCases(
            nodes.flatMap { node in
                node.argumentKinds.map { ($0.position.map { "' \(node.path) \($0)'" } ?? "' \(node.path) '*", $0.kind) }
            })
    }

    private func bashCases(_ rows: [(key: String, kind: ValueKind)]) -> String {
        var groups: [(action: String, keys: [String])] = []
        for (key, kind) in rows {
            guard let action = bashAction(kind) else { continue }
            if let index = groups.firstIndex(where: { $0.action == action }) {
                groups[index].keys.append(key)
            } else {
                groups.append((action, [key]))
            }
        }
        return groups.map { "\(bashPattern($0.keys))\n            \($0.action) ;;" }.joined(separator: "\n")
    }

    private func bashAction(_ kind: ValueKind) -> String? {
        if let choices = kind.choices {
            return "mapfile -t COMPREPLY < <(compgen -W '\(choices.joined(separator: " "))' -- \"$current\")"
        }
        switch kind {
        case .file: return "compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- \"$current\")"
        case .folder: return "compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- \"$current\")"
        default: return nil
        }
    }
}
