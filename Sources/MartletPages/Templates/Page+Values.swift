internal import MartletCore

extension PageContext {
    /// The values that every template has.
    func values(_ heading: String) -> [String: TemplateValue] {
        let links = site.links.map { link -> [String: TemplateValue] in
            [
                "text": TemplateValue(link.text(choice.language, standard: site.language)),
                "url": TemplateValue(link.url),
            ]
        }
        let languages = PageLanguage.allCases.map { language -> [String: TemplateValue] in
            [
                "name": TemplateValue(language.name), "code": TemplateValue(language.rawValue),
                "current": TemplateValue(language == choice.language),
                "url": TemplateValue(path.map { url(of: language, at: $0) }),
            ]
        }
        return [
            "heading": TemplateValue(heading), "site": TemplateValue(site.title),
            "language": TemplateValue(choice.language.rawValue), "nonce": TemplateValue(nonce.text),
            "return_to": TemplateValue(returnTo), "logo": TemplateValue(site.logo), "links": .list(links),
            "languages": .list(path == nil ? [] : languages),
        ]
    }

    /// A page of ours with the language and `return_to`.
    func link(_ path: String?) -> TemplateValue {
        TemplateValue(path.map { PageURL.local(localized($0), [("return_to", returnTo)]) })
    }

    /// A path in the language that the user chose.
    func action(_ path: String?) -> TemplateValue { TemplateValue(path.map(localized)) }
}

private func notice(_ text: String?, _ kind: NoticeKind?, _ requestID: String?) -> TemplateValue {
    TemplateValue(
        text.map { text in
            [
                "text": TemplateValue(text), "kind": TemplateValue(kind?.rawValue),
                "request_id": TemplateValue(requestID),
            ]
        })
}

extension SignInPage {
    package var template: PageTemplate.Name? { .signIn }

    /// The values of its template.
    package func values(in context: PageContext) -> TemplateValues {
        let words = context.words
        let buttons = providers.map { provider -> [String: TemplateValue] in
            [
                "name": TemplateValue(provider.name), "kind": TemplateValue(provider.kind.templateName),
                "label": TemplateValue(provider.kind.label(words)), "url": context.action(provider.url),
            ]
        }
        let form = password.map { form -> [String: TemplateValue] in
            [
                "csrf": TemplateValue(form.csrf), "username": TemplateValue(form.username),
                "invalid": TemplateValue(self.notice == .wrongPassword), "action": context.action(form.action),
                "forgot": context.link(form.forgot),
            ]
        }
        return TemplateValues([
            "providers": .list(buttons), "password": TemplateValue(form), "registration": context.link(registration),
            "notice": MartletPages.notice(self.notice?.text(words), self.notice?.kind, requestID),
        ])
    }
}

extension RegisterPage {
    package var template: PageTemplate.Name? { .register }

    /// The values of its template.
    package func values(in context: PageContext) -> TemplateValues {
        let words = context.words
        let text = error?.text(words)
        return TemplateValues([
            "csrf": TemplateValue(csrf), "username": TemplateValue(username),
            "username_error": TemplateValue(error?.field == .username ? text : nil),
            "password_error": TemplateValue(error?.field == .password ? text : nil),
            "password_hint": TemplateValue(words(.passwordHint, ["count": String(minimumLength)])),
            "by_mail": TemplateValue(byMail != nil), "asks_name": TemplateValue(byMail?.asksName == true),
            "name": TemplateValue(byMail?.name), "name_error": TemplateValue(error?.field == .name ? text : nil),
            "action": context.action(action), "sign_in": context.link(signIn),
            "notice": notice(error?.field == nil ? text : nil, .error, requestID),
        ])
    }
}

extension MessagePage {
    package var template: PageTemplate.Name? { .message }

    /// The values of its template.
    package func values(in context: PageContext) -> TemplateValues {
        TemplateValues([
            "text": TemplateValue(message.text(context.words, site: context.site.title, wait: wait)),
            "request_id": TemplateValue(requestID), "sign_in": context.link(signIn),
            "account": TemplateValue(account != nil), "name": TemplateValue(account?.name),
            "sign_out": context.action(account?.signOut),
        ])
    }
}

extension SignedOutPage {
    package var template: PageTemplate.Name? { .signedOut }

    /// The values of its template.
    package func values(in context: PageContext) -> TemplateValues {
        TemplateValues([
            "text": TemplateValue(context.words(isEverywhere ? .signedOutEverywhere : .signedOutText)),
            "sign_in": context.link(signIn),
        ])
    }
}

extension AccountPage {
    package var template: PageTemplate.Name? { .account }

    /// The values of its template.
    package func values(in context: PageContext) -> TemplateValues {
        let words = context.words
        let error = password?.error?.text(words)
        let form = password.map { change -> [String: TemplateValue] in
            [
                "username": TemplateValue(change.username), "action": context.action(change.action),
                "hint": TemplateValue(words(.passwordHint, ["count": String(change.minimumLength)])),
                "current_error": TemplateValue(change.isAboutNew ? nil : error),
                "new_error": TemplateValue(change.isAboutNew ? error : nil),
            ]
        }
        return TemplateValues([
            "name": TemplateValue(name), "csrf": TemplateValue(csrf), "sign_out": context.action(signOut),
            "notice": MartletPages.notice(self.notice?.text(words), self.notice?.kind, requestID),
            "identities": .list(identities.map { values(of: $0, context) }),
            "linkable": .list(linkable.map { values(of: $0, context) }),
            "sessions": .list(sessions.map { values(of: $0, context) }),
            "password": TemplateValue(form),
            "deletion": .list(deletion.map { [values(of: $0, context)] } ?? []),
        ])
    }

    private func values(of deletion: Deletion, _ context: PageContext) -> [String: TemplateValue] {
        let words = context.words
        let text =
            deletion.grace > 0
            ? words(.deleteGraceText, ["wait": words.wait(seconds: deletion.grace)]) : words(.deleteText)
        return [
            "text": TemplateValue(text), "unconfirmed": TemplateValue(deletion.isUnconfirmed),
            "action": context.action(deletion.signIn == nil ? deletion.action : nil),
            "sign_in": context.action(deletion.signIn),
        ]
    }

    private func values(of identity: Identity, _ context: PageContext) -> [String: TemplateValue] {
        let words = context.words
        let provider = identity.provider.displayName(words)
        return [
            "provider": TemplateValue(provider), "kind": TemplateValue(identity.provider.templateName),
            "name": TemplateValue(identity.name), "linked": TemplateValue(words.date(identity.linkedAt)),
            "used": TemplateValue(identity.lastUsedAt.map { words.elapsed(since: $0, now: now) }),
            "revoked": TemplateValue(identity.isRevoked ? words(.identityRevoked, ["provider": provider]) : nil),
            "unlink": context.action(identity.unlink),
            "unlink_label": TemplateValue(words(.unlinkNamed, ["provider": provider])),
        ]
    }

    private func values(of linkable: Linkable, _ context: PageContext) -> [String: TemplateValue] {
        let provider = linkable.provider.displayName(context.words)
        return [
            "provider": TemplateValue(provider), "kind": TemplateValue(linkable.provider.templateName),
            "link_label": TemplateValue(context.words(.linkNamed, ["provider": provider])),
            "action": context.action(linkable.action),
        ]
    }

    private func values(of session: Session, _ context: PageContext) -> [String: TemplateValue] {
        let words = context.words
        let device = DeviceDescription(name: session.deviceName, userAgent: session.userAgent).text(words)
        return [
            "device": TemplateValue(device), "location": TemplateValue(session.location),
            "signed_in": TemplateValue(words.date(session.signedInAt)),
            "used": TemplateValue(words.elapsed(since: session.lastUsedAt, now: now)),
            "provider": TemplateValue(session.provider?.displayName(words)),
            "current": TemplateValue(session.isCurrent),
            "end_label": TemplateValue(words(.endSessionNamed, ["device": device])),
            "end": context.action(session.isCurrent ? nil : session.end),
        ]
    }
}

extension ProviderButton.Kind {
    /// For class names of templates.
    var templateName: String {
        switch self {
        case .apple: "apple"
        case .weChat: "wechat"
        case .password: "password"
        case .other: "other"
        }
    }
}
