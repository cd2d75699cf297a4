internal import MartletCore
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

    /// Writes the members of a problem document, with the names of the challenge's parameters.
    func writeMembers(into body: inout ByteBuffer) {
        if let maximumAge {
            body.append(",\"max_age\":")
            body.append(decimal: Int(maximumAge))
        }
        if let acr {
            body.append(",\"acr_values\":\"")
            body.append(text: acr)
            body.append("\"")
        }
    }

    /// The sentences of RFC 9470 §4.
    private var sentence: StaticString {
        acr == nil ? "More recent authentication is required" : "A different authentication level is required"
    }
}
