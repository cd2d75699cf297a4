internal import MartletCore

/// The sections of the account's page.
struct AccountSections {
    private let page: AccountPage
    private let context: PageContext
    private let words: Words
    private let parts: PageComponents

    init(_ page: AccountPage, _ context: PageContext) {
        self.page = page
        self.context = context
        words = context.words
        parts = PageComponents(context)
    }

    var all: [HTML] { [identities, sessions, password, deletion].compactMap(\.self) }

    private func section(_ id: String, _ title: WordKey, _ text: String?, _ content: HTML) -> HTML {
        """
        <section aria-labelledby="\(id)">
        <h2 id="\(id)">\(words(title))</h2>
        \(text.map { "<p class=\"dim\">\($0)</p>" } ?? .empty)
        \(content)
        </section>
        """
    }

    private func row(_ icon: HTML, _ title: HTML, _ details: [HTML], _ action: HTML) -> HTML {
        let lines = details.map { line -> HTML in "<p class=\"dim\">\(line)</p>" }
        return """
            <li>\(icon)<div class="what"><p class="name">\(title)</p>\(HTML.joined(lines))</div>
            \(action)</li>
            """
    }

    /// A form with one button, whose name says what it is for.
    private func button(_ action: String, _ text: WordKey, label: String, hidden: [(String, String?)] = []) -> HTML {
        parts.form(
            action, csrf: page.csrf, hidden: hidden,
            "<button class=\"button plain small\" type=\"submit\" aria-label=\"\(label)\">\(words(text))</button>")
    }

    // MARK: Ways to sign in

    private var identities: HTML? {
        let rows = page.identities.map(identity) + page.linkable.map(linkable)
        guard !rows.isEmpty else { return nil }
        let text = page.linkable.isEmpty ? nil : words(.identitiesText)
        return section("identities", .identitiesTitle, text, "<ul class=\"rows\">\n\(HTML.joined(rows))</ul>")
    }

    private func identity(_ identity: AccountPage.Identity) -> HTML {
        let provider = identity.provider.displayName(words)
        let dates = [
            words(.linkedOn, ["date": words.date(identity.linkedAt)]),
            identity.lastUsedAt.map { words(.lastUsed, ["time": words.elapsed(since: $0, now: page.now)]) },
        ]
        var details: [HTML] = ["\(dates.compactMap(\.self).joined(separator: " · "))"]
        if let name = identity.name { details.insert("<bdi>\(name)</bdi>", at: 0) }
        if identity.isRevoked {
            details.append("<span class=\"attention\">\(words(.identityRevoked, ["provider": provider]))</span>")
        }
        if identity.unlink == nil { details.append("\(words(.onlyIdentity))") }
        let action = identity.unlink.map {
            button($0, .unlink, label: words(.unlinkNamed, ["provider": provider]))
        }
        return row(mark(identity.provider), "\(provider)", details, action ?? .empty)
    }

    private func linkable(_ linkable: AccountPage.Linkable) -> HTML {
        let provider = linkable.provider.displayName(words)
        return row(
            mark(linkable.provider), "\(provider)", ["\(words(.notConnected))"],
            button(linkable.action, .link, label: words(.linkNamed, ["provider": provider])))
    }

    private func mark(_ kind: ProviderButton.Kind) -> HTML {
        switch kind {
        case .apple, .weChat: "<span class=\"token \(kind.style)\">\(kind.icon)</span>"
        case .password:
            "<span class=\"token\" aria-hidden=\"true\">\(String(kind.displayName(words).prefix(1)).uppercased())</span>"
        case .other(_, .some): "<span class=\"token\" aria-hidden=\"true\">\(kind.icon)</span>"
        case .other(let label, nil):
            "<span class=\"token\" aria-hidden=\"true\">\(String(label.prefix(1)).uppercased())</span>"
        }
    }

    // MARK: Devices

    private var sessions: HTML? {
        guard !page.sessions.isEmpty else { return nil }
        let rows = page.sessions.map(session)
        let everywhere = parts.form(
            page.signOut, csrf: page.csrf, hidden: [("all", "true")],
            "<button class=\"button plain\" type=\"submit\">\(words(.signOutEverywhere))</button>")
        return section(
            "sessions", .sessionsTitle, words(.sessionsText),
            "<ul class=\"rows\">\n\(HTML.joined(rows))</ul>\n\(page.sessions.count > 1 ? everywhere : .empty)")
    }

    private func session(_ session: AccountPage.Session) -> HTML {
        let device = DeviceDescription(name: session.deviceName, userAgent: session.userAgent).text(words)
        let used = words(.lastUsed, ["time": words.elapsed(since: session.lastUsedAt, now: page.now)])
        let dated = words(.signedInOn, ["date": words.date(session.signedInAt)])
        let first = [session.location, session.isCurrent ? nil : used].compactMap(\.self)
        let second = [dated, session.provider?.displayName(words)].compactMap(\.self)
        let badge: HTML = session.isCurrent ? " <span class=\"badge\">\(words(.thisDevice))</span>" : .empty
        let details = [first, second].filter { !$0.isEmpty }.map { line -> HTML in
            "<bdi>\(line.joined(separator: " · "))</bdi>"
        }
        let action =
            session.isCurrent
            ? HTML.empty : button(session.end, .signOut, label: words(.endSessionNamed, ["device": device]))
        return row(.empty, "<bdi>\(device)</bdi>\(badge)", details, action)
    }

    // MARK: Password and deletion

    private var password: HTML? {
        guard let change = page.password else { return nil }
        let error = change.error?.text(words)
        let current = FormField(
            id: "current-password", name: "current_password", label: words(.currentPassword),
            autocomplete: "current-password", error: change.isAboutNew ? nil : error)
        let new = FormField(
            id: "new-password", name: "new_password", label: words(.newPassword), autocomplete: "new-password",
            hint: words(.passwordHint, ["count": String(change.minimumLength)]), error: change.isAboutNew ? error : nil)
        // Password managers store the new password under this name.
        let name = change.username.map { name -> HTML in
            """
            <input class="hidden" type="text" name="username" value="\(name)" autocomplete="username" \
            aria-label="\(words(.username))" tabindex="-1" readonly>
            """
        }
        let form = parts.form(
            change.action, csrf: page.csrf, style: "narrow",
            """
            \(name ?? .empty)
            \(parts.field(current))
            \(parts.field(new))
            <button class="button primary" type="submit">\(words(.changePassword))</button>
            """)
        return section("password", .passwordTitle, words(.changePasswordText), form)
    }

    private var deletion: HTML? {
        guard let deletion = page.deletion else { return nil }
        let text =
            deletion.grace > 0
            ? words(.deleteGraceText, ["wait": words.wait(seconds: deletion.grace)]) : words(.deleteText)
        if let signIn = deletion.signIn {
            let link: HTML = """
                <p>\(words(.deleteSignIn))</p>
                <p><a class="button plain" href="\(context.localized(signIn))">\(words(.signInAgain))</a></p>
                """
            return section("deletion", .deleteTitle, text, link)
        }
        let error: HTML =
            deletion.isUnconfirmed
            ? "<p class=\"error\" id=\"confirm-error\" role=\"alert\">\(words(.deleteNotConfirmed))</p>" : .empty
        let form = parts.form(
            deletion.action, csrf: page.csrf,
            """
            \(error)
            <div class="check"><input id="confirm" type="checkbox" name="confirm" value="true" required\
            \(attribute: "aria-describedby", deletion.isUnconfirmed ? "confirm-error" : nil)\
            \(attribute: "aria-invalid", deletion.isUnconfirmed ? "true" : nil)>
            <label for="confirm">\(words(.deleteConfirm))</label></div>
            <button class="button danger" type="submit">\(words(.deleteAccount))</button>
            """)
        return section("deletion", .deleteTitle, text, form)
    }
}
