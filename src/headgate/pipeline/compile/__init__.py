"""Compile a manifest to SQL templates that a person can read. Pure: same manifest, same bytes.

Walk: silver and core/sql/strict_json give fragments → dataset lays them out by the Jinja files in
`datasets/_template` → templates seals them and checks edited ones. Beside: dbt_files, evolution.
"""
