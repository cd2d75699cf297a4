internal import MartletCore
internal import MartletJSON
internal import MartletProvider

extension StepUpRequirement {
    /// Writes the challenge, with the parameters that OpenID Connect requests have, too.
    func writeChallenge(into out: inout ByteBuffer) {
        out.append("Bearer realm=\"martlet\", error=\"insufficient_user_authentication\", error_description=\"")
        out.append(sentence)
        out.append("\"")
        if let maximumAge {
            out.append(", max_age=")
            out.append(decimal: Int(maximumAge))
        }
        if let acr {
            out.append(", acr_values=\"")
            out.append(text: acr)
            out.append("\"")
        }
    }

    /// Writes the same parameters as members of a problem document.
    func writeMembers(into out: inout ByteBuffer) {
        if let maximumAge {
            out.append(",\"max_age\":")
            out.append(decimal: Int(clamping: maximumAge))
        }
        if let acr {
            out.append(",\"acr_values\":")
            out.append(JSON.write(.string(acr)))
        }
    }

    /// The sentences of RFC 9470 §4.
    private var sentence: StaticString {
        acr == nil ? "More recent authentication is required" : "A different authentication level is required"
    }
}
